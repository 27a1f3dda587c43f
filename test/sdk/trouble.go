package sdk

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// trouble is a proxy to a server that cuts, loses, delays and repeats, as
// sdk/scenarios/README.md says under "Trouble": the first name of a path says how.
type trouble struct {
	server string
	client *http.Client

	mu   sync.Mutex
	seen map[string]int // guarded by mu: how often there was a request like this
}

func newTrouble(server string) *trouble {
	return &trouble{server: server, seen: map[string]int{}, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Bounds of what goes wrong.
const (
	cutAfter  = 3                     // events
	cutWait   = 50 * time.Millisecond // until then they have come: Bun drops what it has not given yet when a connection breaks
	slowWait  = 100 * time.Millisecond
	slowPiece = 7 // bytes
)

func (p *trouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	way, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	target := p.server + "/" + path
	if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	key := r.Header.Get("Idempotency-Key")
	nth := p.count(way + " " + r.Method + " " + target + " " + key)
	switch {
	case way == "busy" && nth == 0:
		refuse(w, http.StatusTooManyRequests, "1", "rate_limited")
		return
	case way == "flaky" && key == "" && r.Method != http.MethodPost && r.Method != http.MethodPatch && nth%2 == 0:
		refuse(w, http.StatusServiceUnavailable, "0", "service_unavailable")
		return
	case way == "mute":
		<-r.Context().Done()
		return
	case way == "slow":
		select {
		case <-time.After(slowWait):
		case <-r.Context().Done():
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if way == "repeat" && (r.Method == http.MethodGet || key != "") {
		res := p.pass(r, target, body)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	res := p.pass(r, target, body)
	defer res.Body.Close()
	if way == "drop" || way == "lost" && nth == 0 || way == "flaky" && key != "" && nth%2 == 0 {
		_, _ = io.Copy(io.Discard, res.Body) // the server has done it
		panic(http.ErrAbortHandler)
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	switch way {
	case "cut":
		cut(r.Context(), w, res)
	case "slow":
		flushed(w, func(out io.Writer) error {
			_, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{res.Body}, make([]byte, slowPiece))
			return err
		})
	default:
		flushed(w, func(out io.Writer) error {
			_, err := io.Copy(out, res.Body)
			return err
		})
	}
}

// count is how often there was a request like this before.
func (p *trouble) count(request string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[request]++
	return p.seen[request] - 1
}

// pass makes the request of a client at the server.
func (p *trouble) pass(r *http.Request, target string, body []byte) *http.Response {
	q, err := http.NewRequestWithContext(r.Context(), r.Method, target, bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	q.Header = r.Header.Clone()
	res, err := p.client.Do(q)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return res
}

func refuse(w http.ResponseWriter, status int, after, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Trace-Id", "trc_of_the_proxy")
	w.Header().Set("Retry-After", after)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+code+`","message":"trouble on the way"}`)
}

// cut passes some events of a stream on, and breaks the connection. What is no stream passes.
func cut(ctx context.Context, w http.ResponseWriter, res *http.Response) {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	end := map[string]string{"application/x-ndjson": "\n", "text/event-stream": "\n\n"}[media]
	flushed(w, func(out io.Writer) error {
		if end == "" {
			_, err := io.Copy(out, res.Body)
			return err
		}
		in, event := bufio.NewReader(res.Body), ""
		for n := 0; n < cutAfter; {
			line, err := in.ReadString('\n')
			if err != nil {
				return nil //nolint:nilerr // the stream has ended before it is cut
			}
			if event += line; strings.HasSuffix(event, end) {
				if _, err := io.WriteString(out, event); err != nil {
					return err
				}
				event = ""
				n++
			}
		}
		select {
		case <-time.After(cutWait):
		case <-ctx.Done():
		}
		panic(http.ErrAbortHandler)
	})
}

// flushed has what is written sent at once.
func flushed(w http.ResponseWriter, write func(io.Writer) error) {
	if err := write(flusher{w, http.NewResponseController(w)}); err != nil {
		panic(http.ErrAbortHandler)
	}
}

type flusher struct {
	io.Writer
	c *http.ResponseController
}

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}
