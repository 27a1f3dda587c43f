package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/core/tenant"
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
		s := &Server{decoding: share.NewPool(TenantDecoding, "bytes for request bodies", 8*bodyCost*MaxBody)}
		var held []*Call
		for range 4 {
			c := sending(s, "hostile", MaxBody, announced)
			if body, err := c.ReadBody(); err != nil || len(body) != MaxBody {
				t.Fatal(len(body), err)
			}
			held = append(held, c)
		}
		_, err := sending(s, "hostile", MaxBody, announced).ReadBody()
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Exhausted || f.Dimension != TenantDecoding || f.ResetsAt.IsZero() {
			t.Errorf("announced %v: one too many: %v", announced, err)
		}
		if err := sending(s, "hostile", 0, announced).Hold(MaxBody); fault.KindOf(err) != fault.Exhausted {
			t.Errorf("announced %v: a message: %v", announced, err)
		}
		small := sending(s, "hostile", freeBytes-1, announced)
		if body, err := small.ReadBody(); err != nil || len(body) != freeBytes-1 {
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
