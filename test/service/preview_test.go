package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestKilledServerKeepsPreviewsAndTerminals: a preview's address and a terminal
// outlive the server, whether it is killed or ends for another to follow it.
func TestKilledServerKeepsPreviewsAndTerminals(t *testing.T) {
	line := newSuccession(t)
	line.tool("shell", map[string]any{"command": `echo here > index.html; (python3 -m http.server 8000 --bind 127.0.0.1 > /dev/null 2>&1 &)
until (: < /dev/tcp/127.0.0.1/8000) 2> /dev/null; do sleep 0.05; done`}, nil)
	var opened struct{ URL string }
	line.tool("browse", map[string]any{"port": 8000}, &opened)
	at, err := url.Parse(opened.URL)
	if err != nil {
		t.Fatal(err)
	}
	page := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, line.now().URL, nil)
		if err != nil {
			return err
		}
		req.Host = at.Host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK || string(body) != "here\n" {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		return errors.Join(err, res.Body.Close())
	}

	// A program counts on the terminal, watched or not.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var process string
	var cursor int64
	open := func(q url.Values) *websocket.Conn {
		t.Helper()
		q.Set("session", "kills")
		var conn *websocket.Conn
		atolltest.Until(t, time.Minute, "the terminal is there", func() bool {
			c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(line.now().URL, "http")+"/v1/sandboxes/default/terminal?"+q.Encode(), &websocket.DialOptions{
				HTTPHeader: http.Header{"Authorization": {"Bearer " + atolltest.Key}},
			})
			conn = c
			return err == nil
		})
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
	shown := ""
	// read reads until the count has gone on to n; what a cursor follows counts.
	counted := regexp.MustCompile(`n=(\d+)\.`)
	read := func(conn *websocket.Conn, n int) {
		t.Helper()
		for piece := ""; ; {
			kind, data, err := conn.Read(ctx)
			if err != nil {
				t.Fatalf("after %q: %v", shown, err)
			}
			if kind == websocket.MessageBinary {
				piece += string(data)
				continue
			}
			var m struct {
				ProcessID string `json:"process_id"`
				Cursor    int64
			}
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatal(err)
			}
			if m.ProcessID != "" {
				process = m.ProcessID
			}
			if m.Cursor > cursor {
				shown, piece, cursor = shown+piece, "", m.Cursor
			}
			if all := counted.FindAllStringSubmatch(shown, -1); len(all) > 0 && atoi(t, all[len(all)-1][1]) >= n {
				return
			}
		}
	}
	conn := open(url.Values{})
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("stty -echo; n=0; while sleep 0.05; do n=$((n+1)); echo n=$n.; done\n")); err != nil {
		t.Fatal(err)
	}
	read(conn, 1)
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		if err := page(); err != nil {
			t.Fatal(err)
		}
		line.next(sig)
		_ = conn.CloseNow()
		var last error
		atolltest.Until(t, time.Minute, "the preview is there", func() bool { last = page(); return last == nil })
		conn = open(url.Values{"process": {process}, "after": {strconv.FormatInt(cursor, 10)}})
		read(conn, (i+1)*20)
	}
	// Each number once, in order, watched or not.
	for i, m := range counted.FindAllStringSubmatch(shown, -1) {
		if atoi(t, m[1]) != i+1 {
			t.Fatalf("after %d comes %s", i, m[1])
		}
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
