package httpapi

import (
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Probes are the operations for those who run the server. A nil Server serves to document
// them.
func (s *Server) Probes() []Operation {
	down := Refusal(http.StatusServiceUnavailable, "It is not; the message says why.")
	return []Operation{
		{
			Method: http.MethodGet, Path: "/healthz", ID: "getHealth", Tag: "operations", Summary: "The process is up", Description: "It answers as long as the process serves HTTP, without a look at database, bus or sandboxes. Restart a server that does not answer; use `/readyz` to decide whether to send it work.", Access: Public,
			Answers: []Answer{OK(map[string]string{}, "It is."), down}, Serve: Returns(func(*Call) (map[string]string, error) { return map[string]string{"status": "ok"}, nil }),
		},
		{
			Method: http.MethodGet, Path: "/readyz", ID: "getReady", Tag: "operations", Summary: "The server can run code", Description: "It asks the bus, the database, the disk and the pool of sandboxes, and fails while the server is shutting down. While one of them fails, the answer is 503 and names it: take the server out of the balancer until it is 200 again.", Access: Public,
			Answers: []Answer{OK(map[string]string{}, "It can."), down}, Serve: Returns(s.getReady),
		},
		{
			Method: http.MethodGet, Path: "/metrics", ID: "getMetrics", Tag: "operations", Summary: "Figures for Prometheus", Description: "Counters, gauges and histograms of requests, executions, sandboxes and queues in Prometheus' text format. Labels are from closed sets: no tenant, key or program is named.", Access: Public,
			Answers: []Answer{{Status: http.StatusOK, Doc: "Prometheus text format.", Media: []Media{{"text/plain", ""}}, Header: []Param{
				{Name: "Vary", Doc: "Accept-Encoding."}, {Name: "Content-Encoding", Doc: "gzip or zstd, if the client takes it."},
			}}},
			Serve: Writes(func(c *Call) error { s.metrics.handler.ServeHTTP(c.W, c.R); return nil }),
		},
	}
}

func (s *Server) getReady(c *Call) (map[string]string, error) {
	if err := c.Draining(); err != nil {
		return nil, err
	}
	if err := s.ready(c.Context()); err != nil {
		if _, ok := errors.AsType[*fault.Error](err); ok {
			return nil, err
		}
		return nil, fault.Wrap(fault.Unavailable, err, "not ready") // probes come without a key
	}
	return map[string]string{"status": "ready"}, nil
}
