package redteam

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// operation is one of the server's, as its OpenAPI document lists them.
type operation struct {
	Method, Path string
	Keyed        bool // it takes a key
	Params       []string
	Body         any    // an example of its JSON body; nil where it has none
	Media        string // of its body
}

// spec is what the server says it can do.
type spec []operation

var pathParam = regexp.MustCompile(`\{([^}]+)\}`)

// theSpec reads the server's OpenAPI document, so that an operation that is added is
// attacked without a change here.
func (a *arena) theSpec(ctx context.Context) (spec, error) {
	return a.spec.get(ctx, func(ctx context.Context) (spec, error) {
		var doc struct {
			Paths map[string]map[string]json.RawMessage `json:"paths"`
		}
		if err := a.stranger.must(ctx, http.MethodGet, "/openapi.json", nil, &doc); err != nil {
			return nil, err
		}
		var all spec
		for path, methods := range doc.Paths {
			for method, raw := range methods {
				if op, ok := readOperation(method, path, raw); ok {
					all = append(all, op)
				}
			}
		}
		slices.SortFunc(all, func(x, y operation) int { return strings.Compare(x.Path+x.Method, y.Path+y.Method) })
		return all, nil
	})
}

// readOperation reads one operation; what is no operation, such as a list of
// parameters, is none.
func readOperation(method, path string, raw json.RawMessage) (op operation, ok bool) {
	var it struct {
		Security []map[string][]string `json:"security"`
		Request  struct {
			Content map[string]struct {
				Example any `json:"example"`
			} `json:"content"`
		} `json:"requestBody"`
	}
	if !slices.Contains([]string{"get", "put", "post", "patch", "delete"}, method) || json.Unmarshal(raw, &it) != nil {
		return op, false
	}
	op = operation{Method: strings.ToUpper(method), Path: path, Keyed: len(it.Security) > 0}
	for _, m := range pathParam.FindAllStringSubmatch(path, -1) {
		op.Params = append(op.Params, strings.TrimSuffix(m[1], "..."))
	}
	for media, content := range it.Request.Content {
		if op.Media == "" || media == "application/json" {
			op.Media, op.Body = media, content.Example
		}
	}
	if op.Media == "application/json" && op.Body == nil {
		op.Body = map[string]any{}
	}
	if op.Media != "" && op.Media != "application/json" {
		op.Body = []byte("redteam")
	}
	return op, true
}

// below returns the operations whose path begins with a prefix and has a parameter.
func (s spec) below(prefix, param string) (out spec) {
	for _, op := range s {
		if strings.HasPrefix(op.Path, prefix) && slices.Contains(op.Params, param) {
			out = append(out, op)
		}
	}
	return out
}

// fill puts values in the place of an operation's parameters; what has none becomes
// something that looks like one.
func (op operation) fill(values map[string]string) string {
	return pathParam.ReplaceAllStringFunc(op.Path, func(param string) string {
		name := strings.TrimSuffix(strings.Trim(param, "{}"), "...")
		if v := values[name]; v != "" {
			return v
		}
		switch name {
		case "port":
			return "8000"
		case "trace_id":
			return "trc_" + strings.Repeat("0", 32)
		}
		return "redteam-none"
	})
}

// idIn returns the id field of a JSON answer.
func idIn(body []byte) string {
	var it struct{ ID string }
	_ = json.Unmarshal(body, &it) // without an id, idIn returns ""
	return it.ID
}
