package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// spoken is what the provider's models say in the end.
const spoken = "It is done, as you see."

// thought is how long a model takes that thinks.
const thought = time.Second

// provider is a scripted provider in this process. The user's first word says what a model
// does: "say" something; "call N" the sandbox N times, one after the other, "think N" the
// same with a second before each answer; "wait" says nothing for an hour. "fan" hands work to
// all workers at once, "slowest" to the last one; "work N" runs a program between two answers,
// which take N ms together.
type provider struct {
	base   string
	server *http.Server
	client *http.Client

	mu   sync.Mutex
	ends map[string]time.Time // of the last answer to each question
}

func newProvider() (*provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{
		base: "http://" + listener.Addr().String(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}},
		ends: map[string]time.Time{},
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", &scriptedmodel.Provider{Next: p.next})
	mux.HandleFunc("/stamps/v1/responses", stamps)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }() // ends with close
	return p, nil
}

func (p *provider) close() error {
	p.client.CloseIdleConnections()
	return p.server.Close()
}

func (p *provider) next(r scriptedmodel.Request) (turn scriptedmodel.Turn, ok bool) {
	said, results := asked(r.Body)
	words := strings.Fields(said)
	turn = scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: strings.SplitAfter(spoken, " ")}}, Usage: &model.Usage{Input: 10, Output: 5}}
	count := 0
	if len(words) > 1 {
		count, _ = strconv.Atoi(words[1])
	}
	switch words[0] {
	case "wait":
		turn.Wait = time.Hour
	case "fan", "slowest":
		if results == 0 {
			turn.Blocks = handed(words[0] == "fan")
		}
	case "work":
		if results == 0 {
			turn = scriptedmodel.Ask("call_work", "run_code", `{"language":"python","code":"print(1)"}`)
		}
		turn.Wait = time.Duration(count) * time.Millisecond / 2
	case "call", "think":
		if results < count {
			turn = scriptedmodel.Ask(fmt.Sprint("call_", results), "run_code", `{"language":"python","code":"print(1)"}`)
		}
		if words[0] == "think" {
			turn.Wait = thought
		}
		if results == count {
			turn.Sent = func(n, all int) {
				if n == all {
					p.mu.Lock()
					p.ends[said] = time.Now()
					p.mu.Unlock()
				}
			}
		}
	}
	return turn, true
}

// handed are calls that hand work to the workers, or to the last of them alone.
func handed(all bool) (calls []scriptedmodel.Block) {
	for i, ms := range workTimes {
		if all || i == len(workTimes)-1 {
			calls = append(calls, scriptedmodel.Block{Call: &scriptedmodel.Call{
				ID: fmt.Sprint("call_", i), Name: fmt.Sprint("handoff_to_", workName, i), Arguments: []string{fmt.Sprintf(`{"task":"work %d"}`, ms)},
			}})
		}
	}
	return calls
}

// asked is the question in a request, and the number of results in it.
func asked(body map[string]any) (said string, results int) {
	items, ok := body["input"].([]any)
	if !ok {
		return fmt.Sprint(body["input"]), 0
	}
	for _, it := range items {
		switch it := it.(map[string]any); {
		case it["type"] == "function_call_output":
			results++
		case it["role"] == "user":
			if parts, ok := it["content"].([]any); ok && len(parts) > 0 {
				first, _ := parts[0].(map[string]any)
				said = fmt.Sprint(first["text"])
			}
		}
	}
	return said, results
}

// ask asks a model straight. It returns how long it took until an event came, or until the
// end without want.
func (p *provider) ask(ctx context.Context, word, want string) (time.Duration, error) {
	begun := time.Now()
	in, err := p.open(ctx, "/v1", word)
	if err != nil {
		return 0, err
	}
	first, err := streamed(in, begun, `"response.completed"`)
	if want == "" || err != nil {
		return time.Since(begun), err
	}
	return first, nil
}

// open asks a model straight, as Atoll does, and returns the events of its answer.
func (p *provider) open(ctx context.Context, under, word string) (io.ReadCloser, error) {
	body, err := json.Marshal(map[string]any{"model": "scripted", "stream": true, "input": word})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+under+"/responses", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer none"}}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("the provider answered %d", res.StatusCode)
	}
	return res.Body, nil
}

// end is when the last answer to a question had been given.
func (p *provider) end(said string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[said]
}
