package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
	"github.com/atoll-run/atoll/internal/core/execution"
)

const (
	streams     = 40
	streamLines = 50 // a second, of each stream
	bulk        = 1 << 30
)

// stream measures what is between a program's write and its reader.
func stream(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	lines, err := stamped(ctx, s, b.count(100), 100*time.Millisecond)
	if err != nil {
		return nil, fmt.Errorf("one stream: %w", err)
	}
	first := ages(lines, time.Time{})
	rows := []report.Row{{
		Case: "a line's way from write to reader, p50", Unit: "ms", Measured: report.Milliseconds(first.Percentile(50)), Sample: first.Summary(),
		Must: report.AtMost(5), Note: "one stream, a line every 100 ms; by the clocks of sandbox and host",
	}}
	row, err := manyStreams(ctx, b, s)
	if err != nil {
		row = report.Row{Case: "40 streams", Err: err.Error()}
	}
	rows = append(rows, row)
	if row, err = bulkStream(ctx, b, s); err != nil {
		row = report.Row{Case: "1 GB of 1 KiB lines", Err: err.Error()}
	}
	return append(rows, row), nil
}

// line is when a line was written and when it was read.
type line struct{ written, read time.Time }

// ages are how old lines were when they were read, those left out that were
// written before a time.
func ages(lines []line, from time.Time) report.Sample {
	var s report.Sample
	for _, l := range lines {
		if !l.written.Before(from) {
			s = append(s, l.read.Sub(l.written))
		}
	}
	return s
}

// stamped streams a program that writes the time. A line that is missing or out
// of order is an error.
func stamped(ctx context.Context, s *rig.Server, lines int, every time.Duration) ([]line, error) {
	code := fmt.Sprintf("import time\nnext = time.time()\nfor i in range(%d):\n next += %f\n time.sleep(max(0, next - time.time()))\n print(i, time.time_ns(), flush=True)\n", lines, every.Seconds())
	body, err := s.Stream(ctx, rig.Program{Language: execution.Python, Code: code})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var got []line
	for in := bufio.NewScanner(body); in.Scan(); {
		now := time.Now()
		var e struct {
			Type, Data, Status string
			Seq                int64
		}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return nil, err
		}
		switch e.Type {
		case "output":
			var i int
			var at int64
			if _, err := fmt.Sscan(e.Data, &i, &at); err != nil || i != len(got) {
				return nil, fmt.Errorf("line %q where %d follows", e.Data, len(got))
			}
			got = append(got, line{time.Unix(0, at), now})
		case "result":
			if e.Status != "success" || len(got) != lines {
				return nil, fmt.Errorf("%s after %d of %d lines", e.Status, len(got), lines)
			}
			return got, nil
		}
	}
	return nil, errors.New("the stream ended before its result")
}

// manyStreams measures the same for many programs at the same time, from when
// the last of them has begun: making their sandboxes takes all cores.
func manyStreams(ctx context.Context, b *bench, s *rig.Server) (report.Row, error) {
	window := b.window(30 * time.Second)
	var mu sync.Mutex
	var every [][]line
	var wg sync.WaitGroup
	var failed error
	for range streams {
		wg.Go(func() {
			lines, err := stamped(ctx, s, int((window+10*time.Second).Seconds()*streamLines), time.Second/streamLines)
			mu.Lock()
			defer mu.Unlock()
			every, failed = append(every, lines), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return report.Row{}, failed
	}
	var begun time.Time
	for _, lines := range every {
		if first := lines[0].read; first.After(begun) {
			begun = first
		}
	}
	var all report.Sample
	for _, lines := range every {
		all = append(all, ages(lines, begun)...)
	}
	return report.Row{
		Case: fmt.Sprintf("%d streams of %d lines/s each, p99", streams, streamLines), Unit: "ms",
		Measured: report.Milliseconds(all.Percentile(99)), Sample: all.Summary(), Must: report.AtMost(50),
		Note: fmt.Sprintf("%d lines since the last program began; none lost, none out of order; the programs run on the same cores", len(all)),
	}, nil
}

// bulkStream measures how fast a program's output can be read as NDJSON, and
// how much memory the server takes for it.
func bulkStream(ctx context.Context, b *bench, s *rig.Server) (report.Row, error) {
	size := int64(bulk)
	if b.quick {
		size /= 10
	}
	blocks := size / (64 << 10)
	code := fmt.Sprintf("import os\nblock = (b'x' * 1023 + b'\\n') * 64\nfor _ in range(%d):\n  left = block\n  while left: left = left[os.write(1, left):]\n", blocks)
	if err := s.Settle(ctx); err != nil {
		return report.Row{}, err
	}
	before, err := s.PeakRSS()
	if err != nil {
		return report.Row{}, err
	}
	began := time.Now()
	body, err := s.Stream(ctx, rig.Program{Language: execution.Python, Code: code})
	if err != nil {
		return report.Row{}, err
	}
	defer body.Close()
	in := bufio.NewReaderSize(body, 1<<20)
	var got, lines, seq int64
	var took time.Duration
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // the result, which has 10 MiB of output
			break
		}
		if err != nil {
			return report.Row{}, fmt.Errorf("after %d lines: %w", lines, err)
		}
		if bytes.HasPrefix(line, []byte(`{"type":"output"`)) {
			at := bytes.LastIndex(line, []byte(`"seq":`))
			n, err := strconv.ParseInt(string(bytes.Trim(line[at+6:], "}\n")), 10, 64)
			if err != nil {
				return report.Row{}, fmt.Errorf("after event %d: %w", seq, err)
			}
			if n != seq+1 && seq != 0 {
				return report.Row{}, fmt.Errorf("event %d follows %d", n, seq)
			}
			seq = n
			lines++
			got += 1024
			took = time.Since(began)
		}
	}
	if got != blocks*64<<10 {
		return report.Row{}, fmt.Errorf("%d of %d bytes", got, blocks*64<<10)
	}
	after, err := s.PeakRSS()
	if err != nil {
		return report.Row{}, err
	}
	return report.Row{
		Case: fmt.Sprintf("%d MB of 1 KiB lines in 64 KiB blocks, as NDJSON", size/1e6), Unit: "MB/s",
		Measured: float64(got) / 1e6 / took.Seconds(), Must: report.AtLeast(30),
		Note: fmt.Sprintf("%d lines, none lost; the server's greatest memory went from %d to %d MB", lines, before/1e6, after/1e6),
	}, nil
}
