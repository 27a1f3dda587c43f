package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// FuzzDecoder gives the decoder what a hostile program could write, in pieces of
// every size: it takes it or says that it is none of ours, and the pieces make no
// difference.
func FuzzDecoder(f *testing.F) {
	covers, err := redact.New(redact.Config{Secrets: []string{"hunter2-secret"}})
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range []string{
		`{"id":1,"type":"done","status":"ok","exit_code":0}` + "\n",
		`{"id":1,"type":"display","data":{"text/plain":"x","application/json":[1,{"a":1e999}]},"metadata":{}}` + "\n",
		`{"id":1,"type":"error","name":"E","value":"v","traceback":["a","b"]}` + "\n{}\n",
		`{"id":1,"type":"result","data":{"text/plain":5}}` + "\n", "\n\n", "{", "\x00\xff\n",
	} {
		f.Add([]byte(line), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		decode := func(size int) (n int, err error) {
			var d decoder
			for rest := data; len(rest) > 0; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				err = d.write(piece, func(m *message) error {
					n++
					for _, value := range m.Data {
						if covered := redactJSON(covers, value); !covered.IsValid() || bytes.Contains(covered, []byte("hunter2-secret")) {
							t.Fatalf("%q becomes %q", value, covered)
						}
					}
					return nil
				})
				if err != nil {
					return n, err
				}
			}
			return n, nil
		}
		if size < 1 || size > 1<<20 {
			size = 1
		}
		whole, err := decode(len(data) + 1)
		if err != nil && !errors.Is(err, errProtocol) {
			t.Fatal(err)
		}
		if parts, other := decode(size); parts != whole || (err == nil) != (other == nil) {
			t.Fatalf("%d messages and %v at once, %d and %v in pieces of %d", whole, err, parts, other, size)
		}
	})
}

// held returns the approximate peak memory of f in bytes. It runs the garbage collector
// continuously to measure only live memory.
func held(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for {
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
		select {
		case <-done:
			return most - before
		case <-time.After(time.Millisecond):
		}
	}
}

// TestDisplaysAreNotInflated checks that a display takes at most a few times its text in memory,
// however many elements it contains.
func TestDisplaysAreNotInflated(t *testing.T) {
	covers, err := redact.New(redact.Config{Secrets: []string{"hunter2-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	many := func(head, piece, tail string) string { return head + strings.Repeat(piece, (4<<20)/len(piece)) + tail }
	for name, value := range map[string]string{"numbers": many("[", "0,", `"hunter2-secret"]`), "lists": many("[", "[],", `"hunter2-secret"]`), "texts": many("[", `"",`, `"hunter2-secret"]`)} {
		var covered []byte
		if n := held(func() { covered = redactJSON(covers, []byte(value)) }); n > 48<<20 {
			t.Errorf("%s: %d bytes are held for %d", name, n, len(value))
		}
		if len(covered) < len(value)-10 || bytes.Contains(covered, []byte("hunter2-secret")) || !bytes.HasSuffix(covered, []byte(`"[redacted]"]`)) {
			t.Errorf("%s: it becomes %d bytes, %.100q", name, len(covered), covered[max(0, len(covered)-50):])
		}
	}
	var fields strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&fields, `"%d":0,`, i)
	}
	if got := redactJSON(covers, []byte("{"+fields.String()+`"z":0}`)); string(got) != "null" {
		t.Errorf("an object of 500001 fields becomes %d bytes", len(got))
	}
	if got := redactJSON(covers, []byte(`{"hunter2-secret":1,"[redacted]":2,"x":{"a":1,"a":[2]}}`)); string(got) != `{"[redacted]":1,"x":{"a":1}}` {
		t.Errorf("got %s", got)
	}
	line := []byte(`{"id":1,"type":"display","data":{` + fields.String() + `"z":0}}`)
	if n := held(func() { _, err = parse(line) }); err == nil || n > uint64(4*len(line)) {
		t.Errorf("a display of 500001 forms: %v, %d bytes are held", err, n)
	}
}
