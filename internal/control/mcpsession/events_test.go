package mcpsession

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestReplayIsFair: a tenant that sends much loses its own oldest events, and no other's.
func TestReplayIsFair(t *testing.T) {
	const most = 1 << 20
	live := map[string]tenant.ID{"a": "quiet", "b": "loud", "c": "loud"}
	e := newEvents(most, func(id string) (tenant.ID, bool) { of, ok := live[id]; return of, ok }, func(id string) { delete(live, id) }, func(context.Context) {})
	open := func(session, stream string) {
		t.Helper()
		if err := e.Open(t.Context(), session, stream); err != nil {
			t.Fatal(err)
		}
	}
	send := func(session, stream, data string) {
		t.Helper()
		if err := e.Append(t.Context(), session, stream, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	after := func(session, stream string, index int) (out []string, err error) {
		for data, err := range e.After(t.Context(), session, stream, index) {
			if err != nil {
				return nil, err
			}
			out = append(out, string(data))
		}
		return out, nil
	}
	open("a", "s")
	send("a", "s", "")
	send("a", "s", "mine"+strings.Repeat("x", most/4))
	large := strings.Repeat("y", most/8)
	for i := range 100 {
		for _, session := range []string{"b", "c"} {
			stream := fmt.Sprint("s", i)
			open(session, stream)
			send(session, stream, large)
		}
		if e.bytes > most+len(large)+eventCost {
			t.Fatalf("%d bytes are kept", e.bytes)
		}
	}
	if got, err := after("a", "s", 0); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "mine") {
		t.Errorf("the quiet tenant's event: %d %v", len(got), err)
	}
	if got, err := after("c", "s99", -1); err != nil || len(got) != 1 {
		t.Errorf("the newest event: %d %v", len(got), err)
	}
	if _, err := after("b", "s0", -1); !errors.Is(err, mcp.ErrEventsPurged) {
		t.Errorf("the oldest event: %v", err)
	}
	if _, err := after("a", "t", -1); err == nil {
		t.Error("a stream that there is not has events")
	}
	for _, session := range []string{"a", "b", "c"} {
		if err := e.SessionClosed(t.Context(), session); err != nil {
			t.Error(err)
		}
		if e.Open(t.Context(), session, "late") == nil || e.Append(t.Context(), session, "s", nil) == nil {
			t.Error("a session that is over takes events")
		}
	}
	if e.bytes != 0 || len(e.tenants) != 0 || len(e.sessions) != 0 {
		t.Errorf("%d bytes of %d tenants are left", e.bytes, len(e.tenants))
	}
}
