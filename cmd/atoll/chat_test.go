package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// TestChatWithoutFiles: that files cannot be listed, or not be saved, does not end a conversation.
func TestChatWithoutFiles(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	lists := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/sessions/" + id:
			fmt.Fprint(w, `{"id":"`+id+`","status":"idle"}`)
		case "/v1/sessions/" + id + "/files":
			lists++
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":{"code":"forbidden","message":"no files for this key"}}`)
		default:
			t.Errorf("asked for %s", r.URL)
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	got := atoll(t, "/files\n/files .\n", map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}, "chat", "--session", id, "--base-url", server.URL)
	if got.code != 0 || lists != 2 || strings.Count(got.err, "no files for this key") != 2 || !strings.Contains(got.err, "to go on: atoll chat") {
		t.Errorf("%d lists, %+v", lists, got)
	}
}

// TestChatCommands checks that lines with a slash never reach the model.
func TestChatCommands(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || r.URL.Path != "/v1/sessions/"+id {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		fmt.Fprint(w, `{"id":"`+id+`","status":"idle"}`)
	}))
	defer server.Close()
	got := atoll(t, "/help\n/hlep me\n/session\n/exit\nnever sent\n", map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}, "chat", "--session", id, "--base-url", server.URL)
	for _, want := range []string{"/files [FOLDER]", `unknown command "/hlep"`, "idle", "to go on: atoll chat"} {
		if got.code != 0 || !strings.Contains(got.err, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
}

// TestSendSurvivesARestart cuts the stream of a turn, refuses connections for a moment as a
// server that restarts does, and expects the rest of the turn, each part once, although a stream
// that begins in the middle of a message has its pieces from the first one on.
func TestSendSurvivesARestart(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	event := func(seq int, rest string) string {
		return fmt.Sprintf("data: {\"id\":\"evt_%d\",\"turn_id\":\"turn_1\",%s}\n\n", seq, rest)
	}
	var cut atomic.Bool
	var away atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() && away.Add(1) <= 3 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		switch path := strings.TrimPrefix(r.URL.Path, "/v1/sessions/"+id); {
		case path == "/events" && r.Method == http.MethodPost:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, event(5, `"type":"message","role":"user","content":"Hi."`), "data: {\"type\":\"delta\",\"of\":\"message\",\"item_id\":\"i\",\"turn_id\":\"turn_1\",\"text\":\"Hello, \"}\n\n")
			w.(http.Flusher).Flush()
			cut.Store(true)
			panic(http.ErrAbortHandler)
		case path == "/events/stream":
			if got := r.URL.Query().Get("after"); got != "evt_5" {
				t.Errorf("the stream continues after %q", got)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, text := range []string{"Hel", "lo, w", "orld."} {
				fmt.Fprint(w, "data: {\"type\":\"delta\",\"of\":\"message\",\"item_id\":\"i\",\"turn_id\":\"turn_1\",\"text\":\""+text+"\"}\n\n")
			}
			fmt.Fprint(w, event(6, `"type":"message","role":"assistant","item_id":"i","content":"Hello, world."`), event(7, `"type":"status","stop_reason":{"type":"end_turn"}`))
		case path == "/events":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"data":[{"id":"evt_4","type":"status"}]}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	got := atoll(t, "", map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}, "session", "send", id, "Hi.", "--base-url", server.URL)
	if got.code != 0 || strings.TrimSpace(got.out) != "Hello, world." {
		t.Errorf("got %+v", got)
	}
}

// TestChatSurvivesARestart has the server restart while chat waits for a message: the message that
// is sent then may be lost, and the conversation goes on.
func TestChatSurvivesARestart(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/v1/sessions/"+id); {
		case path == "":
			fmt.Fprint(w, `{"id":"`+id+`","status":"idle"}`)
		case path == "/events" && r.Method == http.MethodPost:
			if sent++; sent == 1 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"id\":\"evt_1\",\"turn_id\":\"turn_1\",\"type\":\"status\",\"stop_reason\":{\"type\":\"end_turn\"}}\n\n")
		case path == "/events":
			fmt.Fprint(w, `{"data":[]}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	got := atoll(t, "Hi.\nHi.\n", map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}, "chat", "--session", id, "--base-url", server.URL)
	if got.code != 0 || sent != 2 || !strings.Contains(got.err, "did not receive the message: send it again") {
		t.Errorf("%d messages were sent, %+v", sent, got)
	}
}

// TestChatWithoutScreen: where stderr leads to a file, the terminal shows what is typed, and no
// editor writes it to the file instead.
func TestChatWithoutScreen(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"sess_1","status":"idle"}`)
	}))
	defer server.Close()
	user, program := openTerminal(t)
	if _, err := user.WriteString("/exit\n"); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	a := &cli{std: stdio{in: program, out: io.Discard, err: &said}, getenv: func(string) string { return "" }}
	if err := a.chat(t.Context(), sdk.New(server.URL, "x"), "sess_1"); err != nil || strings.Contains(said.String(), "> ") {
		t.Errorf("%v, %q", err, said.String())
	}
}
