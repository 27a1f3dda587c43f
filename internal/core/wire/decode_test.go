package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
)

type embedded struct {
	Tier *string `json:"tier,omitzero" enum:"standard,regulated"`
}

type limits struct {
	Memory *int64   `json:"memory,omitzero"`
	Ports  []uint16 `json:"ports,omitzero"`
	Kind   string   `json:"kind,omitzero" enum:"a,b"`
}

type request struct {
	Name    *string              `json:"name" required:"true"`
	Timeout *wire.Seconds        `json:"timeout,omitzero"`
	Wait    *wire.Millis         `json:"wait,omitzero"`
	Env     map[string]wire.Text `json:"env,omitzero"`
	List    []wire.Text          `json:"list,omitzero"`
	Limits  *limits              `json:"limits,omitzero"`
	At      *time.Time           `json:"at,omitzero"`
	On      *bool                `json:"on,omitzero"`
	Rate    *float64             `json:"rate,omitzero"`
	Secret  any                  `json:"secret,omitzero" hidden:"true"`
	embedded
}

// TestElements: objects in lists are held to their tags, too, and named by their places.
func TestElements(t *testing.T) {
	type item struct {
		Name *string  `json:"name" required:"true"`
		Kind *string  `json:"kind,omitzero" enum:"a,b"`
		At   []limits `json:"at,omitzero"`
	}
	type body struct {
		Items  []item      `json:"items,omitzero"`
		Change *[]item     `json:"change,omitzero"`
		Times  []time.Time `json:"times,omitzero"`
		Far    []*item     `json:"far,omitzero"`
		Any    []wire.Text `json:"any,omitzero"`
	}
	for input, says := range map[string]string{
		`{"items":[]}`: "",
		`{"items":[{"name":"x","kind":"a"}],"times":["2026-01-31T12:00:00Z"],"far":[{"name":"x"}]}`: "",
		`{"items":[{"name":"x"},{}]}`:                     "items[1].name is required: a string",
		`{"items":[null]}`:                                "items[0].name is required: a string",
		`{"items":[{"name":"x","kind":"c"}]}`:             "items[0].kind must be one of a, b",
		`{"items":[{"name":"x","at":[{},{"kind":"c"}]}]}`: "items[0].at[1].kind must be one of a, b",
		`{"change":[{"name":null}]}`:                      "change[0].name is required: a string",
		`{"far":[null]}`:                                  "far[0] must be an object",
	} {
		if got := said(t, wire.Body.Decode([]byte(input), &body{})); got != says {
			t.Errorf("%s:\ngot  %s\nwant %s", input, got, says)
		}
	}
}

func said(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	f, ok := err.(*fault.Error) //nolint:errorlint // Decode returns nothing else
	if !ok || f.Kind != fault.Invalid {
		t.Fatalf("%v is no Invalid fault", err)
	}
	return f.Msg
}

func TestBody(t *testing.T) {
	for input, says := range map[string]string{
		``:                                     "the request body is empty: send a JSON object",
		"{\"name\":\"\xff\"}":                  "the request body must be valid UTF-8",
		`null`:                                 "the request body must be a JSON object",
		` [1]`:                                 "the request body must be a JSON object",
		`{"name":"x"`:                          "the request body is not valid JSON: it ends in the middle of a value",
		`{"name":"x"} x`:                       "the request body is not valid JSON (at byte 13)",
		`{"name":"x","name":"y"}`:              `duplicate field "name"`,
		`{"name":"x","Name":"y"}`:              `unknown field "Name"; known fields are name, timeout, wait, env, list, limits, at, on, rate, tier`,
		`{"name":"x","limits":{"a":1}}`:        `unknown field "a"; known fields are memory, ports, kind`,
		`{}`:                                   "name is required: a string",
		`{"name":null}`:                        "name is required: a string",
		`{"name":1}`:                           "name must be a string",
		`{"name":"x","timeout":"1"}`:           "timeout must be an integer, in seconds",
		`{"name":"x","timeout":1.5}`:           "timeout must be an integer, in seconds",
		`{"name":"x","wait":[]}`:               "wait must be an integer, in milliseconds",
		`{"name":"x","env":[]}`:                "env must be an object whose values are strings",
		`{"name":"x","env":{"A":null}}`:        "env must be an object whose values are strings",
		`{"name":"x","list":[1]}`:              "list must be an array of strings",
		`{"name":"x","limits":1}`:              "limits must be an object with memory, ports, kind",
		`{"name":"x","limits":{"memory":"1"}}`: "limits.memory must be an integer",
		`{"name":"x","limits":{"ports":[65536]}}`:          "limits.ports must be an array of integers from 0 to 65535",
		`{"name":"x","limits":{"kind":"c"}}`:               "limits.kind must be one of a, b",
		`{"name":"x","at":"soon"}`:                         "at must be a time as in RFC 3339, such as 2026-01-31T12:00:00Z",
		`{"name":"x","on":1}`:                              "on must be true or false",
		`{"name":"x","rate":"1"}`:                          "rate must be a number",
		`{"name":"x","tier":"gold"}`:                       "tier must be one of standard, regulated",
		`{"name":"x","tier":1}`:                            "tier must be a string",
		`{"name":"x","` + strings.Repeat("é", 40) + `":1}`: `unknown field "` + strings.Repeat("é", 30) + `…"; known fields are name, timeout, wait, env, list, limits, at, on, rate, tier`,
	} {
		if got := said(t, wire.Body.Decode([]byte(input), &request{})); got != says {
			t.Errorf("%s:\ngot  %s\nwant %s", input, got, says)
		}
	}
	var in request
	err := wire.Body.Decode([]byte(" {\"name\":\"\\u0000\",\"timeout\":99999999999999999999,\"env\":{\"A\":\"b\"},\"limits\":null,\"tier\":\"standard\"}\n"), &in)
	if err != nil || *in.Name != "\x00" || in.Timeout.Duration() < 290*365*24*time.Hour || in.Env["A"] != "b" || in.Limits != nil || *in.Tier != "standard" {
		t.Errorf("%+v %v", in, err)
	}
}

type shell struct {
	Sandbox *string     `json:"sandbox,omitzero" default:"default"`
	Command *string     `json:"command" required:"true"`
	Timeout *wire.Whole `json:"timeout_ms,omitzero" default:"30000"`
	Append  *bool       `json:"append,omitzero" default:"true"`
	Image   *string     `json:"image,omitzero" default:"node:22" fill:"false"`
	Path    *string     `json:"path,omitzero" empty:"false"`
	Content *string     `json:"content,omitzero" nul:"true"`
	Coding  *string     `json:"encoding,omitzero" enum:"utf-8,base64" default:"utf-8"`
}

func TestArguments(t *testing.T) {
	for input, says := range map[string]string{
		``:                                  "command is required: a string",
		`null`:                              "the input must be a JSON object",
		`{"command":"x"`:                    "the input is not valid JSON: it ends in the middle of a value",
		`{"command":"x"} x`:                 "the input is not valid JSON (at byte 16)",
		`{"command":"x","Command":"y"}`:     `unknown field "Command"; known fields are sandbox, command, timeout_ms, append, image, path, content, encoding`,
		`{"command":["x"]}`:                 "command must be a string",
		`{"command":"x","timeout_ms":true}`: "timeout_ms must be an integer",
		`{"command":"a\u0000"}`:             "command must not contain a NUL character",
		`{"command":"x","path":""}`:         "path must not be empty",
		`{"command":"x","encoding":"b"}`:    "encoding must be one of utf-8, base64",
	} {
		if got := said(t, wire.Arguments.Decode([]byte(input), &shell{})); got != says {
			t.Errorf("%s:\ngot  %s\nwant %s", input, got, says)
		}
	}
	var in shell
	err := wire.Arguments.Decode([]byte(`{"command":"x","sandbox":null,"content":"\u0000"}`), &in)
	if err != nil || *in.Sandbox != "default" || *in.Timeout != 30000 || !*in.Append || in.Image != nil || in.Path != nil || *in.Coding != "utf-8" || *in.Content != "\x00" {
		t.Errorf("got %+v %v", in, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","timeout":1,"env":{"A":"b"},"limits":{"memory":1,"ports":[1]},"at":"2026-01-31T12:00:00Z"}`))
	f.Add([]byte(`{"sandbox":"a","command":"b","content":"c","append":true,"encoding":"base64"}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var body request
		if said(t, wire.Body.Decode(input, &body)) == "" && body.Name == nil {
			t.Errorf("%q gives %+v", input, body)
		}
		var in shell
		if said(t, wire.Arguments.Decode(input, &in)) == "" && (in.Command == nil || in.Sandbox == nil || in.Append == nil || *in.Coding != "utf-8" && *in.Coding != "base64") {
			t.Errorf("%q gives %+v", input, in)
		}
	})
}

func FuzzWholeRunes(f *testing.F) {
	f.Add([]byte("a\xe6\xbc"))
	f.Fuzz(func(t *testing.T, p []byte) {
		n := wire.WholeRunes(p)
		if n < 0 || n > len(p) || len(p)-n > 3 {
			t.Errorf("%q is cut to %d", p, n)
		}
	})
}
