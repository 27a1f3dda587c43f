package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// TestShowCalls: a call is shown with its arguments, which come after its beginning.
func TestShowCalls(t *testing.T) {
	var out, err bytes.Buffer
	s := &shown{out: &out, err: &err, begun: map[int64]bool{}, writes: map[int64]*item{}}
	for _, e := range []string{
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"mcp_call","name":"order","arguments":""}}`,
		`{"type":"response.mcp_call_arguments.delta","sequence_number":2,"output_index":0,"delta":"{\"tea\""}`,
		`{"type":"response.mcp_call_arguments.done","sequence_number":3,"output_index":0,"arguments":"{\"tea\":1}"}`,
		`{"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":{"type":"mcp_call","name":"order","arguments":"{\"tea\":1}"}}`,
		`{"type":"response.output_item.done","sequence_number":5,"output_index":1,"item":{"type":"mcp_call","name":"cut","arguments":"{"}}`,
	} {
		var ev sdk.ResponseEvent
		if err := json.Unmarshal([]byte(e), &ev); err != nil {
			t.Fatal(err)
		}
		if err := s.event(&ev, json.RawMessage(e)); err != nil {
			t.Fatal(err)
		}
	}
	if got := err.String(); strings.Count(got, "order") != 1 || !strings.Contains(got, `order {"tea":1}`) || !strings.Contains(got, "cut {") {
		t.Errorf("shown is %q", got)
	}
}
