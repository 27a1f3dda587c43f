package httpapi

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// sending is a request of a tenant with a body of a size, which is announced or not.
func sending(s *Server, of tenant.ID, size int, announced bool) *Call {
	r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(bytes.NewReader(make([]byte, size))))
	if r.ContentLength = -1; announced {
		r.ContentLength = int64(size)
	}
	return &Call{W: httptest.NewRecorder(), R: r, server: s, Caller: &tenant.Principal{Tenant: tenant.Tenant{ID: of}}}
}

// TestBodiesShareMemory: a tenant that sends many large bodies at the same time is refused above
// its share, and a neighbor is not.
func TestBodiesShareMemory(t *testing.T) {
	for _, announced := range []bool{true, false} {
		s := &Server{decoding: connections.Bodies{Pool: share.NewPool(connections.TenantDecoding, "bytes for request bodies", 8*connections.BodyCost*MaxBody)}}
		var held []*Call
		for range 4 {
			c := sending(s, "hostile", MaxBody, announced)
			if body, err := c.ReadBody(); err != nil || len(body) != MaxBody {
				t.Fatal(len(body), err)
			}
			held = append(held, c)
		}
		_, err := sending(s, "hostile", MaxBody, announced).ReadBody()
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Exhausted || f.Dimension != connections.TenantDecoding || f.ResetsAt.IsZero() {
			t.Errorf("announced %v: one too many: %v", announced, err)
		}
		if err := sending(s, "hostile", 0, announced).Hold(MaxBody); fault.KindOf(err) != fault.Exhausted {
			t.Errorf("announced %v: a message: %v", announced, err)
		}
		small := sending(s, "hostile", connections.FreeBytes-1, announced)
		if body, err := small.ReadBody(); err != nil || len(body) != connections.FreeBytes-1 {
			t.Errorf("announced %v: a small one: %d, %v", announced, len(body), err)
		}
		c := sending(s, "neighbor", MaxBody, announced)
		if _, err := c.ReadBody(); err != nil {
			t.Errorf("announced %v: the neighbor: %v", announced, err)
		}
		c.letGo()
		if err := held[0].hold(4 * MaxBody); fault.KindOf(err) != fault.Exhausted { // its elements
			t.Errorf("announced %v: what its elements take: %v", announced, err)
		}
		for _, c := range held {
			c.letGo()
		}
		if n := s.decoding.Held("hostile"); n != 0 {
			t.Errorf("announced %v: %d bytes are held after the end", announced, n)
		}
	}
}

// TestSmallestMachine: the largest request that is allowed has room on a machine of little memory.
func TestSmallestMachine(t *testing.T) {
	for _, memory := range []int64{64 << 20, 512 << 20, 1 << 30} {
		s := &Server{decoding: connections.NewBodies(memory, MaxBody)}
		c := sending(s, "alone", MaxBody, true)
		if _, err := c.ReadBody(); err != nil {
			t.Fatalf("%d: %v", memory, err)
		}
		if err := c.hold(wire.MaxValues * wire.ValueCost); err != nil {
			t.Errorf("%d: its elements: %v", memory, err)
		}
	}
}

// TestHoldBody: messages that other readers take from a body count as they may be, also where their
// size is not announced or they are compressed.
func TestHoldBody(t *testing.T) {
	const most = 8 << 20
	for name, c := range map[string]struct {
		size   int
		told   bool
		packed string
		held   int64
	}{
		"announced": {1 << 20, true, "", connections.BodyCost << 20}, "larger than allowed": {2 * most, true, "", connections.BodyCost * most}, "in pieces": {1 << 20, false, "", connections.BodyCost * most}, "small, in pieces": {connections.FreeBytes, false, "", 0},
		"small": {100, true, "", 0}, "compressed": {1000, true, "gzip", connections.BodyCost * 1000 * connections.MaxInflation}, "compressed, large": {1 << 20, true, "gzip", connections.BodyCost * most}, "compressed, in pieces": {10, false, "gzip", connections.BodyCost * most},
	} {
		s := &Server{decoding: connections.Bodies{Pool: share.NewPool(connections.TenantDecoding, "bytes for request bodies", 1<<30)}}
		call := sending(s, "t", c.size, c.told)
		call.R.Header.Set("Content-Encoding", c.packed)
		from, err := call.HoldBody(call.R.Body, most)
		if held := s.decoding.Held("t"); err != nil || held != c.held {
			t.Errorf("%s: %d bytes are held, want %d: %v", name, held, c.held, err)
			continue
		}
		if got, err := io.ReadAll(from); err != nil || len(got) != c.size {
			t.Errorf("%s: %d bytes are read: %v", name, len(got), err)
		}
	}
	endless := &Server{decoding: connections.Bodies{Pool: share.NewPool(connections.TenantDecoding, "bytes for request bodies", 1<<30)}}
	huge := sending(endless, "t", 0, true)
	huge.R.ContentLength = math.MaxInt64 // whose multiple is no number of bytes
	huge.R.Header.Set("Content-Encoding", "gzip")
	if _, err := huge.HoldBody(huge.R.Body, most); err != nil || endless.decoding.Held("t") != connections.BodyCost*most {
		t.Errorf("compressed, of a size that cannot be: %d bytes are held, want %d: %v", endless.decoding.Held("t"), connections.BodyCost*most, err)
	}
	s := &Server{decoding: connections.Bodies{Pool: share.NewPool(connections.TenantDecoding, "bytes for request bodies", most)}}
	if err := sending(s, "t", 0, true).Hold(most / 4); err != nil {
		t.Fatal(err)
	}
	call := sending(s, "t", 1<<20, false)
	if _, err := call.HoldBody(call.R.Body, most); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("without room: %v", err)
	}
}
