package session_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// frames are the kinds and ids of the events in a stream; pieces have no id.
func frames(text string) (kinds, ids []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, kind)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			ids = append(ids, id)
		}
	}
	return kinds, ids
}

// open opens a stream on a connection of its own.
func (k *talk) open(path string) *bufio.Scanner {
	k.Helper()
	door := httptest.NewServer(k.Server.Server)
	k.Cleanup(door.Close)
	r, err := http.NewRequestWithContext(k.Context(), http.MethodGet, door.URL+path, http.NoBody)
	if err != nil {
		k.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+httpapitest.Key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = a.Body.Close() })
	if a.StatusCode != http.StatusOK {
		k.Fatalf("%s: %d", path, a.StatusCode)
	}
	return bufio.NewScanner(a.Body)
}

// TestThreadStream follows a thread from its beginning, with pieces, and continues after each of its
// events.
func TestThreadStream(t *testing.T) {
	answer := make(chan struct{})
	k := openWith(t, `{}`, func(q model.Request) []model.Delta {
		if strings.HasPrefix(q.Instructions, "B") {
			<-answer
		}
		return obey(q)
	})
	k.agent("A", "")
	k.agent("B", "")
	k.agent("Lead", both+`,"multiagent":{"context_sharing":"full"}`)
	k.with("lead")
	if w := httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"do handoff_to_b hello"}`, "Prefer", "respond-async"); w.Code != 202 {
		t.Fatal(w.Body)
	}
	atolltest.Until(t, time.Minute, "the thread begins", func() bool { all := k.threads(); return len(all) == 1 && all[0].Events > 0 })
	path := k.path + "/threads/" + k.threads()[0].ID + "/events/stream"
	lines := k.open(path + "?deltas=true")
	var text strings.Builder
	var once sync.Once
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if lines.Text() == "event: status" {
			once.Do(func() { close(answer) }) // it is at work
		}
	}
	got, ids := frames(text.String())
	if strings.Join(got, " ") != "message status delta message usage status" || lines.Err() != nil {
		t.Errorf("%v %s", got, text.String())
	}
	var listed []string
	for _, e := range k.events("/threads/" + k.threads()[0].ID) {
		listed = append(listed, e.ID)
	}
	if !slices.Equal(ids, listed) {
		t.Errorf("streamed %v, listed %v", ids, listed)
	}
	for i, id := range listed {
		for _, w := range []*httptest.ResponseRecorder{httpapitest.Ask(k.Server, "GET", path, "", "Last-Event-ID", id), httpapitest.Ask(k.Server, "GET", path+"?after="+id, "")} {
			if _, rest := frames(w.Body.String()); w.Code != 200 || !slices.Equal(rest, listed[i+1:]) {
				t.Errorf("after %s: %d %v", id, w.Code, rest)
			}
		}
	}
	k.ask(400, "GET", path+"?after="+k.events("")[0].ID, "", nil)
	k.ask(404, "GET", k.path+"/threads/sthr_00000000000000000000000000000000/events/stream", "", nil)
}

// TestFilesOfThreads: what was shared in a thread is listed with the session's files, by the thread.
func TestFilesOfThreads(t *testing.T) {
	k := lead(t, "")
	k.agent("Own", `,"tools":[{"type":"sandbox"}],"handoffs":[{"agent_id":"a"}]`)
	k.with("own")
	k.say("do share_file then handoff_to_a (share_file) then share_file")
	var page struct {
		Data []sessionapi.SessionFile
		Next *string `json:"next_page"`
	}
	var of []string
	for query := "?limit=1"; ; query = "?limit=1&page=" + *page.Next {
		page.Data, page.Next = nil, nil
		k.ask(200, "GET", k.path+"/files"+query, "", &page)
		for _, f := range page.Data {
			thread := ""
			if f.ThreadID != nil {
				thread = *f.ThreadID
			}
			of = append(of, thread)
		}
		if page.Next == nil {
			break
		}
	}
	if want := []string{"", k.threads()[0].ID, ""}; !slices.Equal(of, want) {
		t.Errorf("shared in %q, want %q", of, want)
	}
	k.ask(400, "GET", k.path+"/files?page=x", "", nil)
}
