package atolltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are a server's figures, as it tells them. A figure is parsed when it is asked
// for: all of them are a thousand lines, and some are looked at again and again.
type Metrics []byte

// Metrics reads a server's figures.
func (s *Server) Metrics(t testing.TB) Metrics {
	t.Helper()
	m, err := s.metrics(t.Context())
	if err != nil {
		t.Fatalf("read metrics: %v", err)
	}
	return m
}

func (s *Server) metrics(ctx context.Context) (Metrics, error) {
	all, err := s.metricsOf(ctx, s.URL)
	if err != nil || s.gateway == nil {
		return all, err
	}
	executor, err := s.metricsOf(ctx, s.machine)
	return append(executor, all...), err // family takes the first
}

func (s *Server) metricsOf(ctx context.Context, url string) (_ Metrics, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(res.Status)
	}
	return io.ReadAll(res.Body)
}

// family parses a figure: its type and what follows, up to the help of the next one.
func (m Metrics) family(name string) *dto.MetricFamily {
	_, text, ok := bytes.Cut(append([]byte("\n"), m...), []byte("\n# TYPE "+name+" "))
	if !ok {
		return nil
	}
	text, _, _ = bytes.Cut(text, []byte("\n# HELP "))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(io.MultiReader(strings.NewReader("# TYPE "+name+" "), bytes.NewReader(text), strings.NewReader("\n")))
	if err != nil {
		panic(fmt.Sprintf("the figure %s: %v", name, err)) // the server's mistake
	}
	return all[name]
}

// Has reports whether there is a figure.
func (m Metrics) Has(name string) bool { return len(m.family(name).GetMetric()) > 0 }

// Sum adds up the values of a figure whose labels include all those given as
// "name=value". A histogram counts its observations. What is not there is zero.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, metric := range m.family(name).GetMetric() {
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
		m, err := s.metrics(ctx)
		if err == nil {
			idle, target := m.Sum("atoll_pool_idle"), m.Sum("atoll_pool_target")
			left := Trace(s.Data).Sandboxes()
			if idle == target && len(left) == int(idle) {
				return m
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
