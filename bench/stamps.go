package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	var event []byte
	// By hand: what the provider and the reader cost is taken from the server, and a
	// real provider has a machine of its own.
	send := func(kind string, fields ...string) {
		event = append(append(append(event[:0], "event: "...), kind...), "\ndata: {\"type\":\""...)
		event = strconv.AppendInt(append(append(event, kind...), "\",\"sequence_number\":"...), int64(number), 10)
		event = append(event, ',')
		for _, text := range fields {
			event = append(event, text...)
		}
		_, _ = w.Write(append(event, "}\n\n"...)) // fails with the client gone, as does
		_ = flusher.Flush()
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
		send("response.output_text.delta", `"item_id":"m","output_index":0,"content_index":0,"logprobs":[],"delta":"`, token, `"`)
	}
	send("response.output_item.done", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"`+text.String()+`"}]}`)
	send("response.completed", `"response":{`+head+`,"status":"completed","usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}`)
}

// tokenForm is how a line with a token begins, and what is before the token in it.
type tokenForm struct{ begin, before []byte }

var responseTokens = tokenForm{[]byte(`data: {"type":` + firstToken), []byte(`"delta":"`)}

// stampedTokens reads the tokens of an answer as they come, at most some.
func stampedTokens(in io.ReadCloser, form tokenForm, most int) (got []line, err error) {
	defer in.Close()
	lines := bufio.NewReaderSize(in, 64<<10)
	for len(got) < most {
		text, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // the whole answer, at the end
		}
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(text, form.begin) {
			continue
		}
		now := time.Now()
		_, token, ok := bytes.Cut(text, form.before)
		token, _, ends := bytes.Cut(token, []byte(` "`))
		at, err := strconv.ParseInt(string(token), 10, 64)
		if !ok || !ends || err != nil {
			return nil, fmt.Errorf("the event %q", text)
		}
		got = append(got, line{time.Unix(0, at), now})
	}
	return got, nil
}

// allStamped opens n answers of count tokens at once, and returns the ages of the tokens that
// were sent while all were under way.
func allStamped(n, count int, form tokenForm, open func(i int) (io.ReadCloser, error)) (report.Sample, error) {
	var mu sync.Mutex
	var every [][]line
	var failed error
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			in, err := open(i)
			var got []line
			if err == nil {
				got, err = stampedTokens(in, form, count)
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
	begun, ended := every[0][0].read, every[0][count-1].written
	for _, lines := range every {
		if first := lines[0].read; first.After(begun) {
			begun = first
		}
		if last := lines[count-1].written; last.Before(ended) {
			ended = last
		}
	}
	var all report.Sample
	for _, lines := range every {
		for i := range lines {
			if lines[i].written.After(ended) {
				lines = lines[:i]
				break
			}
		}
		all = append(all, ages(lines, begun)...)
	}
	return all, nil
}

// spent is the processor time that the server has used, and this process.
func (r *responding) spent() (server, own time.Duration, err error) {
	if server, err = r.CPU(); err != nil {
		return 0, 0, err
	}
	var u syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return server, time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// manyAnswers measures a token's way from the provider to the client while many are
// streamed.
func manyAnswers(ctx context.Context, b *bench, r *responding) error {
	count := int(b.window(15*time.Second).Seconds()) * tokens
	word := strconv.Itoa(count)
	straight, err := allStamped(answers, count, responseTokens, func(int) (io.ReadCloser, error) { return r.provider.open(ctx, "/stamps/v1", word) })
	if err != nil {
		return fmt.Errorf("straight: %w", err)
	}
	before, own, err := r.spent()
	if err != nil {
		return err
	}
	all, err := allStamped(answers, count, responseTokens, func(int) (io.ReadCloser, error) {
		return r.Open(ctx, http.MethodPost, "/v1/responses", map[string]any{"model": "stamped", "input": word, "stream": true})
	})
	if err != nil {
		return err
	}
	after, ownAfter, err := r.spent()
	if err != nil {
		return err
	}
	each := func(d time.Duration) int64 { return (d / time.Duration(answers*count)).Microseconds() }
	r.add(report.Row{
		Case: fmt.Sprintf("%d streams of %d tokens/s each, a token's way, p99", answers, tokens), Unit: "ms",
		Measured: report.Milliseconds(all.Percentile(99)), Sample: all.Summary(), Must: report.AtMost(20), Aim: report.AtMost(5),
		Baseline: report.Milliseconds(straight.Percentile(99)), BaselineSample: straight.Summary(), BaselineName: "read from the provider", Absolute: true,
		Note: fmt.Sprintf("%d tokens, none lost; of a core, each took %d µs of the server and %d µs of provider and clients, which are on the same machine", len(all), each(after-before), each(ownAfter-own)),
	})
	return nil
}
