package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestRefuse(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":"a1","method":"initialize","params":{}}`
	for in, want := range map[string]string{
		initialize + "\n": `{"jsonrpc":"2.0","id":"a1","error":{"code":-32603,"message":"no \"image\""}}` + "\n",
		"junk\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n" + initialize: `{"jsonrpc":"2.0","id":"a1","error":{"code":-32603,"message":"no \"image\""}}` + "\n",
		"": "",
	} {
		var out bytes.Buffer
		if err := Refuse(t.Context(), strings.NewReader(in), &out, errors.New(`no "image"`)); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v", in, out.String(), err)
		}
	}
}

func FuzzRequestID(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"initialize"}`))
	f.Add([]byte(`{"id":{"a":[]},"method":"x"}`))
	f.Add([]byte(`{"id":null,"method":"x"}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		id := requestID(message)
		if id == nil {
			return
		}
		var out bytes.Buffer
		if err := answer(&out, id, errors.New("why")); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Errorf("got %q", out.Bytes())
		}
	})
}

func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if said, ok := refusal(text); ok != (said != "") {
			t.Errorf("%q %v", said, ok)
		}
	})
}
