package bus

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestReaderHoldsOneWindow: what is held of a log for a reader who does not take it is a window, of
// what was heard and of what is read from the stream.
func TestReaderHoldsOneWindow(t *testing.T) {
	const most = 64 << 10
	heard := &tail{more: make(chan struct{}, 1)}
	for range 100 {
		heard.add(make([]byte, 8<<10))
		if heard.bytes > most {
			t.Fatalf("%d bytes are held of what was heard", heard.bytes)
		}
	}
	b := embedded(t)
	ctx := t.Context()
	data := []byte(strings.Repeat("x", 8<<10))
	for i := range int64(64) {
		if err := b.Log().Append("trc_1", []execution.Event{{Seq: i + 2, Data: data, Stream: execution.Stdout}}); err != nil {
			t.Fatal(err)
		}
		b.Log().sent(ctx, "trc_1") // each is a message
	}
	for place, seen := uint64(1), 0; seen < 64; {
		page, err := b.Log().read(ctx, "trc_1", place)
		if err != nil || len(page) == 0 {
			t.Fatalf("%d events of 64 are read, %v", seen, err)
		}
		size := 0
		for _, r := range page {
			place = r.place + 1
			for _, e := range r.entry.events {
				size += len(e.Data)
				seen++
			}
		}
		if size > most+len(data) {
			t.Fatalf("%d bytes are read at a time", size)
		}
	}
}
