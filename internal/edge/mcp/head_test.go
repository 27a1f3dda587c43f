package mcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/control/mcpsession"
)

// TestALateOpeningHasItsSession: the head of an answer goes before the SDK's own does when
// the machine is busy, and a client knows its session by the head.
func TestALateOpeningHasItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, late := range map[string]time.Duration{"at once": 0, "late": 2 * holdTime} {
			w := httptest.NewRecorder()
			a := newAnswer(w, &request{message: &message{isPost: true}, session: &mcpsession.Session{ID: "one"}, server: new(mcp.Server)})
			a.Header().Set("Content-Type", "text/event-stream")
			a.Header().Set(sessionHeader, "one")
			for _, event := range []string{"event: prime\nid: 1_0\ndata: \n\n", "event: message\nid: 1_1\ndata: {}\n\n"} {
				if _, err := a.Write([]byte(event)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(late)
			}
			a.end()
			head := w.Result().Header
			if head.Get(sessionHeader) != "one" || head.Get("Content-Type") != "text/event-stream" || w.Code != http.StatusOK {
				t.Errorf("%s: %d %v", name, w.Code, head)
			}
		}
	})
}
