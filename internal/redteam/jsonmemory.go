package redteam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// jsonCases send JSON that needs far more memory than its length.
func jsonCases() []Case {
	return []Case{
		{"json/elements", High, "sends many bodies of millions of elements and fields at once, to every kind of operation", "the server rejects each, keeps its memory bounded, and answers others", jsonElements},
		{"json/large", High, "sends many bodies of the largest size at once, with a length and chunked", "the server rejects them, and keeps its memory bounded", jsonLarge},
		{"json/depth", High, "sends bodies with deep nesting, huge numbers and names, and duplicate fields", "the server rejects each with a 4xx status", jsonDepth},
		{"json/mcp", High, "sends such bodies to the MCP endpoint and to other vendors' protocols", "the server rejects each, and keeps its memory bounded", jsonDoors},
	}
}

// jsonRoom is how far the server's memory may grow while it rejects such bodies.
const jsonRoom = 768 * mib

// resident returns the resident memory of the server's process, or 0 if the server does not report it.
func (a *arena) resident(ctx context.Context) (int64, error) {
	got, err := a.stranger.do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(got.Body) {
		if rest, ok := bytes.CutPrefix(line, []byte("process_resident_memory_bytes ")); ok {
			n, err := strconv.ParseFloat(string(bytes.TrimSpace(rest)), 64)
			return int64(n), err
		}
	}
	return 0, nil
}

// crowd sends requests concurrently and judges the answers. It polls the server's memory until the
// last answer, which also shows that the server still answers other requests.
func (a *arena) crowd(ctx context.Context, requests []func() (*answer, error), judge func(*answer) error) error {
	before, err := a.resident(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(requests))
	var wg sync.WaitGroup
	for i, r := range requests {
		wg.Go(func() {
			got, err := r()
			if err == nil {
				err = judge(got)
			}
			errs[i] = err
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	most := before
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
		now, err := a.resident(ctx)
		if err != nil {
			<-done
			return found("the server stopped answering other requests: %v", err)
		}
		most = max(most, now)
	}
	for _, err := range errs {
		if f, ok := errors.AsType[*finding](err); ok {
			return f
		}
	}
	if most-before > jsonRoom {
		return found("the server grew by %d MiB", (most-before)/mib)
	}
	return errors.Join(errs...)
}

// refusedBody reports a body that the server did not reject. A busy server may answer 503.
func refusedBody(got *answer) error {
	if got.Status < 400 || got.Status >= 500 && got.Status != http.StatusServiceUnavailable {
		return found("the server answered the body with %s", got)
	}
	return nil
}

// bodyBytes is just below the largest body that the server reads.
const bodyBytes = 8*mib - 4096

// bloated returns bodies of many elements, by kind of element.
func bloated() map[string][]byte {
	fill := func(head, piece, tail string) []byte {
		n := (bodyBytes - len(head) - len(tail)) / len(piece)
		return []byte(head + strings.Repeat(piece, n) + tail)
	}
	var fields strings.Builder
	fields.WriteString(`{"metadata":{`)
	for i := 0; fields.Len() < bodyBytes; i++ {
		fmt.Fprintf(&fields, `"k%d":"",`, i)
	}
	fields.WriteString(`"z":""}}`)
	return map[string][]byte{
		"numbers": fill(`{"code":"x","files":[`, "0,", "0]}"), "objects": fill(`{"code":"x","metadata":{"a":[`, "{},", "{}]}}"), "lists": fill(`{"input":[`, "[],", "[]]}"), "fields": []byte(fields.String()),
		"texts": fill(`{"input":[`, `"",`, `""]}`), "messages": fill(`{"input":[`, `{"role":"user","content":""},`, `{}]}`),
	}
}

// jsonPaths has an operation of each kind that reads JSON.
var jsonPaths = []string{executePath, "/v1/responses", "/v1/agents", "/v1/sessions", "/v1/sandboxes", "/v1/tools/execute_code", "/v1/search"}

func (a *arena) sends(ctx context.Context, path string, body []byte, more ...string) func() (*answer, error) {
	return func() (*answer, error) {
		return a.plain.once(ctx, http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, more...)...)
	}
}

func jsonElements(ctx context.Context, a *arena) error {
	var requests []func() (*answer, error)
	bodies := bloated()
	for _, body := range bodies {
		for _, path := range jsonPaths[:2] {
			requests = append(requests, a.sends(ctx, path, body))
		}
	}
	for _, path := range jsonPaths[2:] {
		requests = append(requests, a.sends(ctx, path, bodies["numbers"]))
	}
	return a.crowd(ctx, requests, refusedBody)
}

// pieces hides the length of a body, so that net/http sends it chunked.
type pieces struct{ *bytes.Reader }

func jsonLarge(ctx context.Context, a *arena) error {
	body := []byte(`{"code":"` + strings.Repeat("x", bodyBytes-100) + `","language":"none"}`)
	var requests []func() (*answer, error)
	for i := range 16 {
		path := jsonPaths[i%3]
		requests = append(requests, a.sends(ctx, path, body), func() (*answer, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.plain.base+path, pieces{bytes.NewReader(body)})
			if err != nil {
				return nil, err
			}
			r.Header.Set("Authorization", "Bearer "+a.plain.key)
			r.Header.Set("Content-Type", "application/json")
			return a.plain.send(r)
		})
	}
	return a.crowd(ctx, requests, refusedBody)
}

func jsonDepth(ctx context.Context, a *arena) error {
	for what, body := range map[string]string{
		"lists": `{"metadata":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + "}", "objects": `{"metadata":` + strings.Repeat(`{"a":`, 200_000) + "1" + strings.Repeat("}", 200_000) + "}", "without end": strings.Repeat("[", 1_000_000),
		"a huge number": `{"timeout":1` + strings.Repeat("0", 1_000_000) + "}", "a huge name": `{"` + strings.Repeat("n", 1_000_000) + `":1}`, "a huge exponent": `{"timeout":1e999999999}`, "a field twice": `{"code":"a","code":"b","language":"python"}`,
		"names that differ by case": `{"code":"print(1)","CODE":"print(2)","language":"python"}`, "broken text": "{\"code\":\"\xff\xfe\",\"language\":\"python\"}", "half a surrogate": `{"code":"\ud800","language":"python"}`, "a tail": `{"code":"1","language":"python"}{}`,
	} {
		for _, path := range jsonPaths[:4] {
			got, err := a.plain.once(ctx, http.MethodPost, path, []byte(body), "Content-Type", "application/json")
			if err != nil {
				return err
			}
			if got.Status < 400 || got.Status >= 500 {
				return found("%s sent to %s: %s", what, path, got)
			}
		}
	}
	return nil
}

func jsonDoors(ctx context.Context, a *arena) error {
	many := `[` + strings.Repeat("0,", bodyBytes/2-200) + `0]`
	message := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell","arguments":{"command":` + many + `}}}`)
	var requests []func() (*answer, error)
	for range 8 {
		requests = append(requests, a.sends(ctx, "/mcp", message, "Accept", mcpAccept))
	}
	for _, door := range []string{e2bRoot + "/sandboxes", cloudflareRoot} {
		requests = append(requests, a.sends(ctx, door, []byte(`{"metadata":`+many+`}`), e2bKey, a.plain.key))
	}
	return a.crowd(ctx, requests, func(got *answer) error {
		if got.Status == http.StatusOK && strings.Contains(string(got.Body), `"error"`) {
			return nil // a JSON-RPC error
		}
		return refusedBody(got)
	})
}
