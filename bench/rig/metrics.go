package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics are the values of a server's /metrics, by name with labels.
type Metrics map[string]float64

// Metrics reads the server's metrics.
func (s *Server) Metrics(ctx context.Context) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answered %s", res.Status)
	}
	return parseMetrics(res.Body)
}

// parseMetrics reads the lines of Prometheus's text format; time stamps do not
// occur in what we serve.
func parseMetrics(r io.Reader) (Metrics, error) {
	m := Metrics{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		m[line[:i]] = v
	}
	return m, lines.Err()
}

// Sum adds up the series of a name that have all of the labels, each written
// like `result="miss"`.
func (m Metrics) Sum(name string, labels ...string) float64 {
	var sum float64
series:
	for key, v := range m {
		if key != name && !strings.HasPrefix(key, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(key, l) {
				continue series
			}
		}
		sum += v
	}
	return sum
}
