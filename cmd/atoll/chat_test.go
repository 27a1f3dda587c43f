package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	if got.code != 0 || lists != 2 || strings.Count(got.err, "no files for this key") != 2 || !strings.Contains(got.err, "to continue: atoll chat") {
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
	for _, want := range []string{"/files [FOLDER]", `unknown command "/hlep"`, "idle", "to continue: atoll chat"} {
		if got.code != 0 || !strings.Contains(got.err, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
}

// TestSendSurvivesARestart checks that a send continues after the server cuts the stream and refuses
// connections, as it does in a restart, and prints each part of the turn once. The new stream repeats
// the pieces of an unfinished message.
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

// TestChatSurvivesARestart checks that the chat continues after a message that a restarting server
// did not receive.
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

// TestChatWithoutScreen checks that a chat whose stderr is redirected starts no line editor, which
// would echo the user's input into the file.
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

// TestChatOutlivesABusyServer checks that the chat reports a 503, a 429 and a connection that breaks
// during a command, and then asks again about the waiting call.
func TestChatOutlivesABusyServer(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/v1/sessions/"+id); {
		case path == "":
			fmt.Fprint(w, `{"id":"`+id+`","status":"requires_action"}`)
		case path == "/files":
			panic(http.ErrAbortHandler)
		case path == "/events" && r.Method == http.MethodPost:
			if sent++; sent <= 2 {
				w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests}[sent-1])
				fmt.Fprint(w, `{"error":"busy","message":"come back later"}`)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"id\":\"evt_1\",\"turn_id\":\"turn_1\",\"type\":\"status\",\"stop_reason\":{\"type\":\"end_turn\"}}\n\n")
		case path == "/events":
			fmt.Fprint(w, `{"data":[{"id":"evt_0","type":"status","stop_reason":{"type":"requires_action","requires_action":[{"tool_use_id":"evt_9","name":"run_code","needs":"tool_confirmation"}]}}]}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	noRetries := map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}
	got := atoll(t, "y\ny\ny\n/files\nHi.\n", noRetries, "chat", "--session", id, "--base-url", server.URL)
	if got.code != 0 || strings.Count(got.err, "come back later") != 2 || !strings.Contains(got.err, "to continue: atoll chat") || sent != 4 {
		t.Errorf("%d messages were sent, %+v", sent, got)
	}
}

// TestReconnectPauses checks that the client backs off from streams that break before they deliver
// anything, and gives up in the end.
func TestReconnectPauses(t *testing.T) {
	shown := &turnShown{pieces: map[string]string{}, seen: "evt_1"}
	shown.noteOutage()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	var pauses []time.Duration
	for range 7 {
		shown.noteOutage() // the stream breaks again
		pauses = append(pauses, shown.outage.pause)
		if err := shown.outage.wait(ctx, io.ErrUnexpectedEOF); !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(pauses); got != "[250ms 500ms 1s 2s 4s 5s 5s]" {
		t.Errorf("the pauses are %s", got)
	}
	shown.outage.began = time.Now().Add(-maxReconnect - time.Second)
	if err := shown.outage.wait(ctx, io.ErrUnexpectedEOF); !errors.Is(err, errGaveUp) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %s: %v", maxReconnect, err)
	}
	for _, hear := range []func(){func() { shown.seen = "evt_2" }, func() { shown.pieces["i"] = "Hello" }} {
		hear()
		if shown.noteOutage(); shown.outage.pause != firstPause || time.Since(shown.outage.began) > maxReconnect {
			t.Errorf("after something came, the outage is %+v", shown.outage)
		}
		shown.outage.pause = maxPause
	}
}

// TestBrokenStreamsAreAskedForSlowly checks that atoll pauses before it reopens a stream that broke
// before it delivered anything.
func TestBrokenStreamsAreAskedForSlowly(t *testing.T) {
	const id = "sess_0123456789abcdef0123456789abcdef"
	var streams atomic.Int32
	var posted atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/v1/sessions/"+id); {
		case path == "/events" && r.Method == http.MethodGet && !posted.Load():
			fmt.Fprint(w, `{"data":[]}`)
		case path == "/events" && r.Method == http.MethodGet:
			fmt.Fprint(w, `{"data":[{"id":"evt_2","type":"message","role":"user","content":"Hi."}]}`)
		case path == "/events/stream" && streams.Add(1) == 4:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"id\":\"evt_3\",\"turn_id\":\"turn_1\",\"type\":\"status\",\"stop_reason\":{\"type\":\"end_turn\"}}\n\n")
		case path == "/events/stream" && streams.Load() == 3:
			w.WriteHeader(http.StatusServiceUnavailable) // it restarts; the library tries again
		case path == "/events/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		default:
			posted.Store(posted.Load() || r.Method == http.MethodPost)
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	begun := time.Now()
	got := atoll(t, "", map[string]string{"HOME": t.TempDir(), apiKeyEnv: "x"}, "session", "send", id, "Hi.", "--base-url", server.URL)
	if least := firstPause + 2*firstPause; got.code != 0 || time.Since(begun) < least || strings.Count(got.err, "connection lost") != 1 {
		t.Errorf("after %s: %+v", time.Since(begun), got)
	}
}
