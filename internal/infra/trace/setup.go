package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Config says where spans are sent. What it leaves open is decided by
// OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME and the others of its specification.
type Config struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, such as
	// http://127.0.0.1:4318. Without one, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
	// OTEL_EXPORTER_OTLP_ENDPOINT names it; without any, tracing is off. So it is
	// with OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none.
	Endpoint string
	Version  string // attribute service.version
	Getenv   func(string) string
	Log      *slog.Logger

	// Exporter takes the spans at once instead of an endpoint's; for tests.
	Exporter sdk.SpanExporter
}

// tracesPath is where a collector takes traces, below its endpoint.
const tracesPath = "/v1/traces"

// Setup turns tracing on for this process, if the configuration or the
// environment says where spans go. The returned function sends what is left and
// turns it off; ctx bounds it.
//
// Spans are sent in batches behind the scenes, and dropped rather than waited
// for when the collector is slow or away.
func Setup(ctx context.Context, c Config) (stop func(context.Context) error, err error) {
	if c.Exporter == nil && !wanted(c) {
		return func(context.Context) error { return nil }, nil
	}
	about, err := describe(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	options := []sdk.TracerProviderOption{sdk.WithResource(about)}
	if c.Exporter != nil {
		options = append(options, sdk.WithSyncer(c.Exporter))
	} else {
		exporter, err := exporter(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		options = append(options, sdk.WithBatcher(exporter))
	}
	if c.Log != nil {
		otel.SetErrorHandler(quiet(c.Log))
	}
	provider := sdk.NewTracerProvider(options...)
	t := &target{provider.Tracer("github.com/atoll-run/atoll")}
	if !tracer.CompareAndSwap(nil, t) {
		return nil, errors.Join(errors.New("traces: set up already"), provider.Shutdown(ctx))
	}
	return func(ctx context.Context) error {
		tracer.CompareAndSwap(t, nil)
		return provider.Shutdown(ctx)
	}, nil
}

// wanted reports whether the environment asks for traces.
func wanted(c Config) bool {
	if strings.EqualFold(c.Getenv("OTEL_SDK_DISABLED"), "true") || c.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return c.Endpoint != "" || c.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || c.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func exporter(ctx context.Context, c Config) (sdk.SpanExporter, error) {
	var options []otlptracehttp.Option
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("trace_endpoint must be a URL such as http://127.0.0.1:4318") // what it is may have a password
		}
		if !strings.HasSuffix(u.Path, tracesPath) {
			u.Path = strings.TrimSuffix(u.Path, "/") + tracesPath
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.String()))
	}
	return otlptracehttp.New(ctx, options...)
}

// describe says what every span comes from.
func describe(ctx context.Context, c Config) (*resource.Resource, error) {
	own := []attribute.KeyValue{attribute.String("service.name", "atoll")}
	if c.Version != "" {
		own = append(own, attribute.String("service.version", c.Version))
	}
	return resource.New(ctx,
		resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(own...),
		resource.WithFromEnv(), // last, since the later wins
	)
}

// quiet logs what goes wrong with sending, once a minute at most: a collector
// that is away would fill the log otherwise.
func quiet(log *slog.Logger) otel.ErrorHandler {
	var mu sync.Mutex
	var last time.Time
	return otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= time.Minute {
			last = now
			log.Warn("cannot send traces", "error", err)
		}
	})
}
