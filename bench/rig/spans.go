package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is something that a server did for a request, and how deep it is below it.
type Span struct {
	Name       string
	Begin, End time.Time
	Depth      int
}

// Spans collects what servers say that they did, as an OpenTelemetry collector.
type Spans struct {
	URL    string
	server *http.Server
	ended  chan error

	mu     sync.Mutex
	traces map[string][]linked // guarded by mu
	err    error               // guarded by mu
}

// linked is a span with its own and its parent's id.
type linked struct {
	Span
	id, parent string
}

// CollectSpans starts a collector. The caller closes it.
func CollectSpans(ctx context.Context) (*Spans, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Spans{URL: "http://" + l.Addr().String(), ended: make(chan error, 1), traces: map[string][]linked{}}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { c.ended <- c.server.Serve(l) }() // ends with Close
	return c, nil
}

// Close ends the collector.
func (c *Spans) Close() error {
	err := c.server.Close()
	if e := <-c.ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// ServeHTTP implements http.Handler.
func (c *Spans) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var message collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
	for _, resource := range message.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				id := string(s.GetTraceId())
				c.traces[id] = append(c.traces[id], linked{
					Span{Name: s.GetName(), Begin: nanos(s.GetStartTimeUnixNano()), End: nanos(s.GetEndTimeUnixNano())},
					string(s.GetSpanId()), string(s.GetParentSpanId()),
				})
			}
		}
	}
}

func nanos(n uint64) time.Time { return time.Unix(0, int64(n)) }

// With returns the spans of each request for which something of that name was done, the
// oldest request first, and of each the request's own span first. A server sends its last
// ones when it stops.
func (c *Spans) With(name string) ([][]Span, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, fmt.Errorf("the server's spans: %w", c.err)
	}
	var all [][]Span
	for _, spans := range c.traces {
		i := slices.IndexFunc(spans, func(s linked) bool { return s.parent == "" })
		if i >= 0 && slices.ContainsFunc(spans, func(s linked) bool { return s.Name == name }) {
			all = append(all, below(spans, spans[i], 0))
		}
	}
	slices.SortFunc(all, func(a, b []Span) int { return a[0].Begin.Compare(b[0].Begin) })
	return all, nil
}

// below is a span with all that belongs to it, in order of time at each depth.
func below(all []linked, s linked, depth int) []Span {
	s.Depth = depth
	tree := []Span{s.Span}
	var children []linked
	for _, c := range all {
		if c.parent == s.id {
			children = append(children, c)
		}
	}
	slices.SortFunc(children, func(a, b linked) int { return a.Begin.Compare(b.Begin) })
	for _, c := range children {
		tree = append(tree, below(all, c, depth+1)...)
	}
	return tree
}
