package atolltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are a server's figures by name.
type Metrics map[string]*dto.MetricFamily

// Metrics reads a server's figures.
func (s *Server) Metrics(t testing.TB) Metrics {
	t.Helper()
	text, err := s.scrape(t.Context())
	if err != nil {
		t.Fatalf("read metrics: %v", err)
	}
	return parsed(t, text)
}

func (s *Server) scrape(ctx context.Context) (_ []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	return io.ReadAll(res.Body)
}

func parsed(t testing.TB, text []byte) Metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	m, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("read metrics: %v", err)
	}
	return m
}

// gauge is what a figure without labels, or all of its kinds, come to. It reads no other
// figures: parsing a thousand lines takes too long for what is looked at again and again.
func gauge(text []byte, name string) (sum float64, err error) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok || len(rest) == 0 || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(rest[bytes.LastIndexByte(rest, ' '):])), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", line, err)
		}
		sum += v
	}
	return sum, nil
}

// Sum adds up the values of a figure whose labels include all those given as
// "name=value". A histogram counts its observations. What is not there is zero.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, metric := range m[name].GetMetric() {
		if !matches(metric, labels) {
			continue
		}
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue() +
			float64(metric.GetHistogram().GetSampleCount())
	}
	return sum
}

func matches(metric *dto.Metric, labels []string) bool {
	for _, want := range labels {
		name, value, _ := strings.Cut(want, "=")
		found := false
		for _, l := range metric.GetLabel() {
			found = found || l.GetName() == name && l.GetValue() == value
		}
		if !found {
			return false
		}
	}
	return true
}

// settleTime is how long a server may take to fill its pool and to end what
// was used.
const settleTime = time.Minute

// Settle returns when the pool is as large as it wants to be and nothing but
// the pool is left of all executions, with the figures of that moment. A server
// that gets there no more fails the test.
func (s *Server) Settle(t testing.TB) Metrics {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleTime)
	defer cancel()
	for {
		text, err := s.scrape(ctx)
		if err == nil {
			idle, bad := gauge(text, "atoll_pool_idle")
			target, worse := gauge(text, "atoll_pool_target")
			if err := errors.Join(bad, worse); err != nil {
				t.Fatal(err)
			}
			left := Trace(s.Data).Sandboxes()
			if idle == target && len(left) == int(idle) {
				return parsed(t, text)
			}
			err = fmt.Errorf("%v of %v sandboxes are pooled, %d exist", idle, target, len(left))
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not settle: %v\n%s", err, s.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
