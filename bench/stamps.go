package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

const (
	answers = 200 // streamed at the same time
	tokens  = 100 // a second, of each
)

// stamps is a model whose tokens are the times at which they are sent: as many as the
// question says.
func stamps(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	said, _ := asked(body)
	count, _ := strconv.Atoi(said)
	w.Header().Set("Content-Type", "text/event-stream")
	flusher, number := http.NewResponseController(w), 0
	send := func(kind, fields string) {
		fmt.Fprintf(w, "event: %[1]s\ndata: {\"type\":\"%[1]s\",\"sequence_number\":%[2]d,%[3]s}\n\n", kind, number, fields)
		_ = flusher.Flush() // fails with the client gone
		number++
	}
	const head = `"id":"resp_1","object":"response","created_at":1,"model":"stamped","output":[]`
	send("response.created", `"response":{`+head+`,"status":"in_progress"}`)
	send("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}`)
	tick := time.NewTicker(time.Second / tokens)
	defer tick.Stop()
	var text strings.Builder
	for range count {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		token := strconv.FormatInt(time.Now().UnixNano(), 10) + " "
		text.WriteString(token)
		send("response.output_text.delta", `"item_id":"m","output_index":0,"content_index":0,"logprobs":[],"delta":"`+token+`"`)
	}
	send("response.output_item.done", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"`+text.String()+`"}]}`)
	send("response.completed", `"response":{`+head+`,"status":"completed","usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}`)
}

// stamped reads the tokens of an answer as they come.
func stampedTokens(in io.ReadCloser) (got []line, err error) {
	defer in.Close()
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := lines.ReadString('\n')
		now := time.Now()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		if !strings.Contains(text, firstToken) || !strings.HasPrefix(text, "data: ") {
			continue
		}
		var e struct{ Delta string }
		if err := json.Unmarshal([]byte(text[len("data: "):]), &e); err != nil {
			return nil, err
		}
		at, err := strconv.ParseInt(strings.TrimSpace(e.Delta), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the token %q", e.Delta)
		}
		got = append(got, line{time.Unix(0, at), now})
	}
}

// allStamped opens many answers at once, and returns the ages of the tokens that were sent
// once all had begun.
func allStamped(count int, open func() (io.ReadCloser, error)) (report.Sample, error) {
	var mu sync.Mutex
	var every [][]line
	var failed error
	var wg sync.WaitGroup
	for range answers {
		wg.Go(func() {
			in, err := open()
			var got []line
			if err == nil {
				got, err = stampedTokens(in)
			}
			if err == nil && len(got) != count {
				err = fmt.Errorf("%d of %d tokens came", len(got), count)
			}
			mu.Lock()
			defer mu.Unlock()
			every, failed = append(every, got), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, failed
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
	return all, nil
}

// manyAnswers measures a token's way from the provider to the client while many are
// streamed.
func manyAnswers(ctx context.Context, b *bench, r *responding) error {
	count := int(b.window(15*time.Second).Seconds()) * tokens
	word := strconv.Itoa(count)
	straight, err := allStamped(count, func() (io.ReadCloser, error) { return r.provider.open(ctx, "/stamps/v1", word) })
	if err != nil {
		return fmt.Errorf("straight: %w", err)
	}
	all, err := allStamped(count, func() (io.ReadCloser, error) {
		return r.Open(ctx, http.MethodPost, "/v1/responses", map[string]any{"model": "stamped", "input": word, "stream": true})
	})
	if err != nil {
		return err
	}
	r.add(report.Row{
		Case: fmt.Sprintf("%d streams of %d tokens/s each, a token's way, p99", answers, tokens), Unit: "ms",
		Measured: report.Milliseconds(all.Percentile(99)), Sample: all.Summary(), Must: report.AtMost(20), Aim: report.AtMost(5),
		Baseline: report.Milliseconds(straight.Percentile(99)), BaselineSample: straight.Summary(), BaselineName: "read from the provider", Absolute: true,
		Note: fmt.Sprintf("%d tokens, none lost; provider and clients use the same cores", len(all)),
	})
	return nil
}
