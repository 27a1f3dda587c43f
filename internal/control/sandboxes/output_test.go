package sandboxes

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// TestResumedText cuts off a reader of text behind each chunk: what it has and what a
// reader from the cursor on gets are the text, whole.
func TestResumedText(t *testing.T) {
	covers, err := redact.New(redact.Config{Secrets: []string{"🔑-of-many-bytes"}})
	if err != nil {
		t.Fatal(err)
	}
	const stdout, stderr = "né 🔑 a 🔑-of ü", "ß→"
	var chunks []process.Chunk
	at := process.Seq(0)
	for i := range max(len(stdout), len(stderr)) { // a byte at a time, on both streams
		for s, text := range map[process.Stream]string{process.Stdout: stdout, process.Stderr: stderr} {
			if i < len(text) {
				at++
				chunks = append(chunks, process.Chunk{Stream: s, Seq: at, Data: []byte{text[i]}})
			}
		}
	}
	read := func(v *view, chunks []process.Chunk, whole bool) (out [2]string) {
		for _, c := range chunks {
			v.take(c)
			for s := range out {
				out[s] += string(v.shown(process.Stream(s), false))
			}
		}
		if whole {
			v.flush()
			for s := range out {
				out[s] += string(v.shown(process.Stream(s), true))
			}
		}
		return out
	}
	for cut := range chunks {
		had := read(newView(covers, 0, true), chunks[:cut], false)
		rest := read(newView(covers, process.Seq(cut), true), chunks, true)
		if had[process.Stdout]+rest[process.Stdout] != stdout || had[process.Stderr]+rest[process.Stderr] != stderr {
			t.Errorf("cut off behind %d: %q and %q", cut, had, rest)
		}
	}
}
