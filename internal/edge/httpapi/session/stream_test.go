package session_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// counted counts how often the events and states of sessions are read.
type counted struct {
	session.Store
	reads atomic.Int64
}

func (c *counted) Get(ctx context.Context, t tenant.ID, id session.ID) (*session.Session, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, t, id)
}

func (c *counted) After(ctx context.Context, t tenant.ID, id session.ID, seq int64, limit int) ([]session.Event, error) {
	c.reads.Add(1)
	return c.Store.After(ctx, t, id, seq, limit)
}

// TestReadersShareAFeed: all readers of a session get the same, and what they cost the database
// does not grow with their number.
func TestReadersShareAFeed(t *testing.T) {
	store := &counted{}
	k := openStored(t, func(s session.Store) session.Store {
		store.Store = s
		return store
	})
	k.say("before")
	const readers = 40
	var all [readers]strings.Builder
	var joined, ended sync.WaitGroup
	for i := range readers {
		joined.Add(1)
		lines := k.open(k.path + "/events/stream?deltas=true")
		ended.Go(func() {
			var once sync.Once
			for lines.Scan() {
				all[i].WriteString(lines.Text() + "\n")
				if kinds, _ := frames(all[i].String()); len(kinds) == 5 {
					once.Do(joined.Done)
				}
			}
		})
	}
	joined.Wait()
	before := store.reads.Load()
	for range 3 {
		k.say("call run_code")
	}
	during := store.reads.Load() - before
	k.ask(200, "POST", k.path+"/archive", "", nil)
	ended.Wait()
	for i := range all {
		if kinds, ids := frames(all[i].String()); all[i].String() != all[0].String() || len(ids) < 20 || !strings.Contains(strings.Join(kinds, " "), "delta") {
			t.Fatalf("reader %d got\n%s\nthe first\n%s", i, all[i].String(), all[0].String())
		}
	}
	// Each reader alone reads several times for each turn.
	if during > 3*readers {
		t.Errorf("%d readers had the records read %d times for 3 turns", readers, during)
	}
}

// TestFeedSeesOtherProcesses: what another process does to a session comes without being looked
// for.
func TestFeedSeesOtherProcesses(t *testing.T) {
	k := open(t, `{}`)
	lines := k.open(k.path + "/events/stream")
	var id struct{ ID session.ID }
	k.ask(200, "GET", k.path, "", &id)
	began := time.Now()
	if _, err := k.db.Sessions().Archive(t.Context(), k.Caller.Tenant.ID, id.ID); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stream ended %s after its session", took)
	}
}

// TestStreamLimits: a key that has the most streams gets no more, a refusal says why, and a
// neighbor's streams open.
func TestStreamLimits(t *testing.T) {
	k := openOn(t, `{}`, answer, func(s *httpapitest.Setup) { s.Config.Streams = connections.StreamLimits{Key: 3} })
	var ends []func()
	for range 3 {
		end, err := k.Server.OpenStream(k.Caller)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	refused := func(w *httptest.ResponseRecorder) {
		t.Helper()
		httpapitest.Refused(t, w, 429, "rate_limited", "this key uses 3 streams, and its limit is 3")
		if !strings.Contains(w.Body.String(), `"dimension":"key_streams"`) || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
	}
	refused(httpapitest.Ask(k.Server, "GET", k.path+"/events/stream", ""))
	refused(httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"x"}`, "Accept", "text/event-stream"))
	if types := k.types(); len(types) != 0 {
		t.Errorf("a refused stream began a turn: %v", types)
	}
	if turn := k.say("one"); turn.Content != "one" {
		t.Errorf("%+v", turn)
	}
	httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"hang"}`, "Prefer", "respond-async")
	<-k.hung
	queued := `{"type":"message","content":"two","queue":true}`
	if w := httpapitest.Ask(k.Server, "POST", k.path+"/events", queued, "Accept", "text/event-stream"); w.Code != 202 {
		t.Fatalf("a queued message needs no stream: %d %s", w.Code, w.Body)
	}
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	for range 3 { // turns: the one before, the one that hung, and the queued one
		<-k.ended
	}
	end, err := k.Server.OpenStream(k.Principal(t, "neighbor", "pro"))
	if err != nil {
		t.Fatal(err)
	}
	end()
	ends[0]()
	k.ask(200, "POST", k.path+"/archive", "", nil)
	if w := httpapitest.Ask(k.Server, "GET", k.path+"/events/stream", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "event: usage") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAnswersWithoutStream checks that a request that starts no turn needs no stream: it gets its
// answer at the stream limit too.
func TestAnswersWithoutStream(t *testing.T) {
	k := openOn(t, `{"Confirm":["sandbox"]}`, answer, func(s *httpapitest.Setup) { s.Config.Streams = connections.StreamLimits{Key: 1} })
	turn := k.say("call run_code write_file")
	end, err := k.Server.OpenStream(k.Caller)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	post := func(status int, body string) {
		t.Helper()
		if w := httpapitest.Ask(k.Server, "POST", k.path+"/events", body, "Accept", "text/event-stream"); w.Code != status {
			t.Errorf("%s: got %d %s, want %d", body, w.Code, w.Body, status)
		}
	}
	approve := func(n int) string {
		return fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[n].ToolUseID)
	}
	message := `{"type":"message","content":"x"}`
	post(409, message) // calls wait
	post(200, approve(0))
	post(429, approve(1)) // starts a turn
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	k.ask(200, "POST", k.path+"/archive", "", nil)
	post(409, message)
}
