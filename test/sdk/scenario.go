// Package sdk runs the scenarios of sdk/scenarios against a real server with every client
// library: the one for Go in this process, the others as the programs of their own tests.
package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// scenario is one of a file, as sdk/scenarios/README.md describes it.
type scenario struct {
	Name  string // with that of its area
	Steps []map[string]any
}

// step is a step whose values are filled in.
type step struct {
	Call, Join        string
	With              map[string]any
	Expect            any
	Error             map[string]any
	Stream            []any
	Whole             bool
	Save              map[string]string
	CancelAfterEvents int `json:"cancel_after_events"`
	CancelAfterMS     int `json:"cancel_after_ms"`
	TimeoutMS         int `json:"timeout_ms"`
	Background        string
	Until             bool
	As, Through       string

	expects bool // Expect is given, if only as null
}

func (s *step) cancels() bool { return s.CancelAfterEvents > 0 || s.CancelAfterMS > 0 }

// scenariosDir has the files.
const scenariosDir = "../../sdk/scenarios"

// known is what calls.json says of a call.
type known struct{ Operation, Answer string }

// load reads all scenarios, and the names of calls.
func load() (all []scenario, calls map[string]known, err error) {
	var names struct{ Calls map[string]known }
	if err := decodeFile(filepath.Join(scenariosDir, "calls.json"), &names); err != nil {
		return nil, nil, err
	}
	files, err := filepath.Glob(filepath.Join(scenariosDir, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if filepath.Base(file) == "calls.json" {
			continue
		}
		var area struct {
			Area      string
			Scenarios []scenario
		}
		if err := decodeFile(file, &area); err != nil {
			return nil, nil, err
		}
		for _, s := range area.Scenarios {
			s.Name = area.Area + "/" + s.Name
			all = append(all, s)
		}
	}
	return all, names.Calls, nil
}

func decodeFile(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// filled is a step with its ${name} replaced.
func filled(raw map[string]any, vars map[string]any) (*step, error) {
	whole, err := fill(raw, vars)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	s := &step{}
	_, s.expects = raw["expect"]
	return s, d.Decode(s)
}

// fill replaces ${name} in all texts of a value. A text that is all ${name} becomes the value
// itself.
func fill(v any, vars map[string]any) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return fillText(v, vars)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = fill(v[i], vars); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := map[string]any{}
		for name := range v {
			if out[name], err = fill(v[name], vars); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func fillText(text string, vars map[string]any) (any, error) {
	var out strings.Builder
	for rest := text; ; {
		before, after, ok := strings.Cut(rest, "${")
		out.WriteString(before)
		if !ok {
			return out.String(), nil
		}
		name, behind, ok := strings.Cut(after, "}")
		value, has := vars[name]
		if !ok || !has {
			return nil, fmt.Errorf("there is no ${%s}", name)
		}
		if before == "" && behind == "" && out.Len() == 0 {
			return value, nil
		}
		fmt.Fprint(&out, value)
		rest = behind
	}
}

// at is the value at a path such as data.0.id.
func at(v any, path string) (any, error) {
	for _, name := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			value, ok := in[name]
			if !ok {
				return nil, fmt.Errorf("there is no %s of %s in %s", name, path, short(in))
			}
			v = value
		case []any:
			var i int
			if _, err := fmt.Sscanf(name, "%d", &i); err != nil || i < 0 || i >= len(in) {
				return nil, fmt.Errorf("there is no %s of %s in %d elements", name, path, len(in))
			}
			v = in[i]
		default:
			return nil, fmt.Errorf("there is no %s of %s in %s", name, path, short(in))
		}
	}
	return v, nil
}

// short is a value as JSON, cut.
func short(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(raw) > 600 {
		return fmt.Sprintf("%s… (%d bytes)", raw[:600], len(raw))
	}
	return string(raw)
}

// decodeLoose reads JSON of which only some is wanted.
func decodeLoose(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
