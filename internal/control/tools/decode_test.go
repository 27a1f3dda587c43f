package tools

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct{ input, says string }{
		{``, "command is required: a string"},
		{`null`, "the input must be a JSON object"},
		{`[]`, "the input must be a JSON object"},
		{`{"command":"x"`, "the input is not valid JSON (at byte 14)"},
		{`{"command":"x"} x`, "the input is not valid JSON (at byte 16)"},
		{`{"command":"x","command":"y"}`, `duplicate field "command"`},
		{`{"command":"x","Command":"y"}`, `unknown field "Command"; there are sandbox, command, timeout_ms, working_dir`},
		{`{"command":["x"]}`, "command must be a string"},
		{`{"command":"x","timeout_ms":true}`, "timeout_ms must be a number"},
		{"{\"command\":\"\xff\"}", "the input must be valid UTF-8"},
		{`{"command":"a\u0000"}`, "command must not contain a NUL character"},
	} {
		var in ShellInput
		if err := decode([]byte(c.input), &in); fault.KindOf(err) != fault.Invalid || err == nil || err.(*fault.Error).Msg != c.says { //nolint:errorlint // decode returns nothing else
			t.Errorf("%s: %v, want %s", c.input, err, c.says)
		}
	}
	var in ShellInput
	if err := decode([]byte(`{"command":"x","sandbox":null}`), &in); err != nil || *in.Sandbox != "default" || *in.TimeoutMS != 30000 || *in.WorkingDir != "/home/user" {
		t.Errorf("got %+v %v", in, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"sandbox":"a","path":"b","content":"c","append":true,"encoding":"base64"}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var in WriteFileInput
		err := decode(input, &in)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%q: %v", input, err)
			}
			return
		}
		if in.Path == nil || in.Content == nil || in.Sandbox == nil || in.Append == nil || *in.Encoding != "utf-8" && *in.Encoding != "base64" {
			t.Errorf("%q gives %+v", input, in)
		}
	})
}
