package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// recorder can be looked at while it is written to.
type recorder struct {
	*httptest.ResponseRecorder

	mu sync.Mutex
}

func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ResponseRecorder.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(p)
}

func (r *recorder) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ResponseRecorder.Flush()
}

// sent is what the client of an answer has so far: the head, if flushed, and the body.
func (r *recorder) sent() (head http.Header, flushed bool, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Result().Header, r.Flushed && r.Code == http.StatusOK, r.Body.String()
}

// begin sends a message within the process; done is closed when it has been answered.
func (k *kit) begin(ctx context.Context, method, body string, header ...string) (w *recorder, done chan struct{}) {
	r := httptest.NewRequestWithContext(ctx, method, "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Authorization": {"Bearer alice"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, done = &recorder{ResponseRecorder: httptest.NewRecorder()}, make(chan struct{})
	go func() {
		defer close(done)
		k.serve(w, r)
	}()
	return w, done
}

// opened opens a session within the process.
func (k *kit) opened(t *testing.T) []string {
	t.Helper()
	w, done := k.begin(t.Context(), http.MethodPost, initialize)
	<-done
	return []string{"Mcp-Session-Id", w.Header().Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
}

// takes has every call take a while and return an output.
func (k *kit) takes(d time.Duration, out any) {
	k.answer = func(ctx context.Context, _ string, _ *tools.Caller, _ []byte) (any, error) {
		time.Sleep(d)
		return out, ctx.Err()
	}
}

// TestNoStreamIsSilent: clients give an answer up whose head or next byte does not come
// for 300 s.
func TestNoStreamIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := unserved(t)
		defer k.mcp.Close()
		k.takes(331*time.Second, &tools.ShellOutput{Stdout: "at last"})
		session := k.opened(t)
		for name, header := range map[string][]string{"without a session": nil, "in a session": session, "of an older version": {session[0], session[1], session[2], "2025-06-18"}} {
			w, done := k.begin(t.Context(), http.MethodPost, callShell, header...)
			time.Sleep(time.Second)
			synctest.Wait()
			head, flushed, begun := w.sent()
			if !flushed || !strings.HasPrefix(head.Get("Content-Type"), "text/event-stream") {
				t.Errorf("%s: after a second there is the head %t %v", name, flushed, head)
			}
			if strings.Contains(begun, "event:") || (name == "in a session") != (strings.HasPrefix(begun, "id: ") && strings.HasSuffix(begun, "\ndata: \n\n")) {
				t.Errorf("%s: the stream begins with %q", name, begun)
			}
			<-done
			comments := strings.Count(w.Body.String(), "\n: ") + strings.Count(w.Body.String()[:1], ":")
			if comments != 330/15 || !strings.Contains(w.Body.String(), "at last") {
				t.Errorf("%s: %d comments in 331 s: %s", name, comments, w.Body)
			}
			checkEvents(t, w.Body.Bytes())
		}

		// A stream that waits for news, and one that is taken up.
		ctx, cancel := context.WithCancel(t.Context())
		w, done := k.begin(ctx, http.MethodGet, "", session...)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if _, _, body := w.sent(); strings.Count(body, ": keepalive\n") != 2 {
			t.Errorf("want 2 comments in 31 s: %q", body)
		}
		cancel()
		<-done

		ctx, cancel = context.WithCancel(t.Context())
		w, done = k.begin(ctx, http.MethodPost, callShell, session...)
		time.Sleep(time.Second)
		cancel()
		<-done
		id, _, _ := strings.Cut(strings.TrimPrefix(w.Body.String(), "id: "), "\n")
		w, done = k.begin(t.Context(), http.MethodGet, "", append([]string{"Last-Event-ID", id}, session...)...)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if _, flushed, body := w.sent(); strings.Count(body, ": keepalive\n") != 2 || !flushed {
			t.Errorf("want 2 comments in 31 s of a stream that was taken up: %q", body)
		}
		<-done
		if !strings.Contains(w.Body.String(), "at last") {
			t.Errorf("got %q", w.Body)
		}
	})
}

// checkEvents reads a stream as the official client for Python does, and returns its
// messages. An event that is larger than that client reads fails the test.
func checkEvents(t *testing.T, stream []byte) (messages [][]byte) {
	t.Helper()
	size := 0
	var data []byte
	for line := range bytes.Lines(stream) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch size += len(line); string(field) {
		case "":
			if len(line) > 0 { // a comment
				size -= len(line)
				continue
			}
			if size > 1<<20 {
				t.Errorf("an event has %d bytes", size)
			}
			if size = 0; len(data) > 0 {
				messages = append(messages, data)
			}
			data = nil
		case "event":
			if string(value) != "message" {
				t.Errorf("an event is named %q", value)
			}
		case "data":
			data = value
		}
	}
	return messages
}

// TestLargeResults: one that the official client for Python does not read as an event is
// sent as JSON, or cut when events were sent.
func TestLargeResults(t *testing.T) {
	const kilo = 1 << 10
	outputs := map[string]any{
		"shell":     &tools.ShellOutput{Stdout: strings.Repeat("a\n", 128*kilo), Stderr: strings.Repeat("<ü>", 64*kilo)},
		"read_file": &tools.ReadFileOutput{Content: strings.Repeat("\u2028\"", 64*kilo), Size: 256 * kilo},
		"base64":    &tools.ReadFileOutput{Content: strings.Repeat("QUJD", 160*kilo), Size: 480 * kilo, Encoding: "base64"},
		"glob":      &tools.GlobOutput{Files: strings.SplitAfter(strings.Repeat("&/a\n", 50*kilo), "\n"), Quoted: strings.SplitAfter(strings.Repeat("$'\\\\''\n", 20*kilo), "\n")},
		"code":      &tools.CodeOutput{Stdout: strings.Repeat("\\", 200*kilo), Stderr: strings.Repeat("\x1b", 32*kilo)},
		"execute":   &tools.ExecuteOutput{Stdout: strings.Repeat("\ufffd", 150*kilo), Stderr: strings.Repeat("\ufffd", 150*kilo)},
	}
	synctest.Test(t, func(t *testing.T) {
		k := unserved(t)
		defer k.mcp.Close()
		for name, out := range outputs {
			whole, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			header := map[bool][]string{true: k.opened(t)}[strings.Contains(name, "e")] // some within a session
			k.takes(0, out)
			w, done := k.begin(t.Context(), http.MethodPost, callShell, header...)
			<-done
			if kind := w.Header().Get("Content-Type"); kind != "application/json" || !same(t, structured(t, w.Body.Bytes()), whole) {
				t.Errorf("%s at once is %s of %d bytes", name, kind, w.Body.Len())
			}

			k.takes(time.Minute, out)
			w, done = k.begin(t.Context(), http.MethodPost, callShell, header...)
			<-done
			all := checkEvents(t, w.Body.Bytes())
			if len(all) != 1 {
				t.Fatalf("%s: %d messages", name, len(all))
			}
			got := structured(t, all[0])
			if !bytes.Contains(got, []byte(`truncated":true`)) || len(all[0]) < 600*kilo {
				t.Errorf("%s after a minute has %d bytes, and ends with %s", name, len(all[0]), got[max(0, len(got)-200):])
			}

			w, done = k.begin(t.Context(), http.MethodPost, callShell, append([]string{"X-Atoll-Max-Event", "0"}, header...)...)
			<-done
			if _, data, _ := bytes.Cut(w.Body.Bytes(), []byte("data: {")); !same(t, structured(t, append([]byte("{"), bytes.TrimSpace(data)...)), whole) {
				t.Errorf("%s for a client that reads it all has %d bytes", name, w.Body.Len())
			}
		}
		// What cannot be cut says so.
		k.takes(time.Minute, map[string]string{"a": strings.Repeat("b", 1<<20)})
		w, done := k.begin(t.Context(), http.MethodPost, callShell)
		<-done
		if !strings.Contains(w.Body.String(), "larger than the 1048576 bytes") {
			t.Errorf("got %.500s", w.Body)
		}
	})
}

// structured returns the output of a message, which it has as text, too.
func structured(t *testing.T, message []byte) []byte {
	t.Helper()
	var m struct {
		Result struct {
			StructuredContent json.RawMessage
			Content           []struct{ Text string }
		}
	}
	if err := json.Unmarshal(message, &m); err != nil || len(m.Result.Content) != 1 {
		t.Fatalf("%v in %.200s", err, message)
	}
	if !same(t, m.Result.StructuredContent, []byte(m.Result.Content[0].Text)) {
		t.Error("the text is another output")
	}
	var read struct{ Content, Encoding string }
	if json.Unmarshal(m.Result.StructuredContent, &read) == nil && read.Encoding == "base64" {
		if n := len(read.Content); n%4 != 0 || wire.WholeRunes([]byte(read.Content)) != n {
			t.Errorf("base64 of %d characters", n)
		}
	}
	return m.Result.StructuredContent
}
