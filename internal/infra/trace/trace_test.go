package trace_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// recorder turns tracing on for a test, into memory.
func recorder(t *testing.T) *tracetest.InMemoryExporter {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	stop, err := trace.Setup(t.Context(), trace.Config{Exporter: exporter, Getenv: env(nil), Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return exporter
}

func TestOffIsFree(t *testing.T) {
	if trace.On() {
		t.Fatal("tracing is on, and no setting asks for it")
	}
	ctx, err := t.Context(), errors.New("something")
	header := nats.Header{"traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	if n := testing.AllocsPerRun(100, func() {
		ctx := trace.Extract(ctx, header)
		ctx, span := trace.StartKind(ctx, "execution.run", trace.Consumer, trace.String(trace.TraceID, "id"), trace.Int("n", 7))
		_, inner := trace.Start(ctx, "sandbox.claim", trace.Bool("warm", true))
		inner.Event("claimed", trace.Int("waiting", 1))
		inner.End()
		ctx = trace.Carry(t.Context(), ctx)
		trace.Inject(ctx, header)
		if trace.Header(ctx) != nil {
			t.Error("there are headers")
		}
		span.Set(trace.String("outcome", "success"))
		span.Fail(err)
		span.End()
	}); n != 0 {
		t.Errorf("%v allocations while tracing is off", n)
	}
	if header["traceparent"][0] != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" {
		t.Error("headers were changed")
	}
}

// A request comes in over HTTP, goes on over the bus and ends in an executor.
func TestOneTraceOverTheBus(t *testing.T) {
	exporter := recorder(t)
	request := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}

	ctx, server := trace.StartKind(trace.Extract(t.Context(), request), "POST /v1/sandbox/execute", trace.Server, trace.String(trace.TraceID, "tr-1"))
	message := nats.NewMsg("job")
	trace.Inject(ctx, message.Header)

	executor, run := trace.StartKind(trace.Extract(t.Context(), message.Header), "execution.run", trace.Consumer)
	_, claim := trace.Start(executor, "sandbox.claim")
	claim.Event("claimed", trace.Bool("warm", true))
	claim.End()
	run.Set(trace.Int("exit_code", 1))
	run.Fail(nil)
	run.End()
	server.Fail(fault.New(fault.Exhausted, "the secret is hunter2"))
	server.End()

	spans := exporter.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	parents := map[string]string{"POST /v1/sandbox/execute": "b7ad6b7169203331"}
	for _, s := range spans {
		if id := s.SpanContext.TraceID().String(); id != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s belongs to the trace %s", s.Name, id)
		}
		switch s.Name {
		case "POST /v1/sandbox/execute":
			parents["execution.run"] = s.SpanContext.SpanID().String()
			if s.Status.Code != codes.Error || s.Status.Description != "exhausted" {
				t.Errorf("its status is %v", s.Status)
			}
			if a := s.Attributes[0]; a.Key != trace.TraceID || a.Value.AsString() != "tr-1" {
				t.Errorf("it has the attributes %v", s.Attributes)
			}
		case "execution.run":
			parents["sandbox.claim"] = s.SpanContext.SpanID().String()
			if s.Status.Code != codes.Unset || s.Attributes[0].Value.AsInt64() != 1 {
				t.Errorf("its status is %v, its attributes %v", s.Status, s.Attributes)
			}
		}
	}
	for _, s := range spans {
		if got := s.Parent.SpanID().String(); got != parents[s.Name] {
			t.Errorf("the parent of %s is %s, want %s", s.Name, got, parents[s.Name])
		}
	}
}

func TestHeadersThatMakeNoSense(t *testing.T) {
	recorder(t)
	for _, value := range []string{"", "nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01", strings.Repeat("x", 10_000)} {
		ctx := trace.Extract(t.Context(), map[string][]string{"traceparent": {value}, "tracestate": {"a=b,,,="}})
		if trace.Header(ctx) != nil {
			t.Errorf("%.60q gave a parent", value)
		}
	}
	if ctx := trace.Extract(t.Context(), map[string][]string{"traceparent": nil}); trace.Header(ctx) != nil {
		t.Error("an empty header gave a parent")
	}
}

func TestSetupTwice(t *testing.T) {
	recorder(t)
	if _, err := trace.Setup(t.Context(), trace.Config{Exporter: tracetest.NewInMemoryExporter(), Getenv: env(nil)}); err == nil {
		t.Error("tracing was set up twice")
	}
}

// collector takes what a real exporter sends.
func collector(t *testing.T) (url string, bodies <-chan string) {
	t.Helper()
	took := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		took <- r.URL.Path + " " + r.Header.Get("X-Team") + " " + string(body)
	}))
	t.Cleanup(server.Close)
	return server.URL, took
}

func TestSending(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(url string) trace.Config
	}{
		{"by setting", func(url string) trace.Config { return trace.Config{Endpoint: url, Getenv: env(nil)} }},
		{"by setting with path", func(url string) trace.Config { return trace.Config{Endpoint: url + "/v1/traces", Getenv: env(nil)} }},
		{"by environment", func(url string) trace.Config {
			return trace.Config{Getenv: env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url})}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, bodies := collector(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url) // read by the exporter itself
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=seven")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=trial")
			config := c.setup(url)
			config.Version, config.Log = "v7", slog.New(slog.DiscardHandler)
			stop, err := trace.Setup(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			_, span := trace.Start(t.Context(), "execution.run", trace.String(trace.TraceID, "tr-7"))
			span.End()
			if err := stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if trace.On() {
				t.Error("tracing is on after the end")
			}
			got := <-bodies
			for _, want := range []string{"/v1/traces seven ", "execution.run", trace.TraceID, "tr-7", "v7", "trial", "service.name"} {
				if !strings.Contains(got, want) {
					t.Errorf("what was sent lacks %q", want)
				}
			}
		})
	}
}

func TestOff(t *testing.T) {
	const endpoint = "http://127.0.0.1:1"
	for _, c := range []trace.Config{
		{Getenv: env(nil)},
		{Endpoint: endpoint, Getenv: env(map[string]string{"OTEL_SDK_DISABLED": "TRUE"})},
		{Endpoint: endpoint, Getenv: env(map[string]string{"OTEL_TRACES_EXPORTER": "none"})},
	} {
		stop, err := trace.Setup(t.Context(), c)
		if err != nil || trace.On() {
			t.Errorf("tracing is on: %v", err)
			continue
		}
		if err := stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"127.0.0.1:4318", "ftp://host", "http://"} {
		if _, err := trace.Setup(t.Context(), trace.Config{Endpoint: bad, Getenv: env(nil)}); err == nil {
			t.Errorf("%q was taken for an endpoint", bad)
		}
	}
}
