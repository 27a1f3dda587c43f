// Package trace makes OpenTelemetry spans of what Atoll does for a request, from
// the gateway over the bus to the sandbox.
//
// It is off until Setup is called with somewhere to send them, and free while it
// is: Start then returns its context unchanged and allocates nothing.
package trace

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TraceID is the attribute that has an execution's trace_id, by which callers
// know it. It is not the id of the OpenTelemetry trace.
const TraceID = "atoll.trace_id"

// tracer is where spans go; nil while tracing is off. There is one for the whole
// process, as for its log: every package makes spans, and none decides whether.
var tracer atomic.Pointer[target]

type target struct{ trace.Tracer }

// On reports whether spans are made. Ask before making attributes that cost
// something.
func On() bool { return tracer.Load() != nil }

// Attr is an attribute of a span. Values never hold program output, code or
// secrets.
type Attr struct {
	key  string
	text string
	num  int64
	kind attribute.Type
}

// String, Int and Bool make attributes.
func String(key, value string) Attr { return Attr{key: key, text: value, kind: attribute.STRING} }

func Int(key string, value int64) Attr { return Attr{key: key, num: value, kind: attribute.INT64} }

func Bool(key string, value bool) Attr {
	a := Attr{key: key, kind: attribute.BOOL}
	if value {
		a.num = 1
	}
	return a
}

func (a Attr) value() attribute.KeyValue {
	switch a.kind {
	case attribute.INT64:
		return attribute.Int64(a.key, a.num)
	case attribute.BOOL:
		return attribute.Bool(a.key, a.num == 1)
	default:
		return attribute.String(a.key, a.text)
	}
}

// Span is something that takes time. The zero Span is one that is not recorded.
type Span struct{ span trace.Span }

// Kind says on which side of a conversation a span is.
type Kind = trace.SpanKind

const (
	Internal Kind = trace.SpanKindInternal
	Server   Kind = trace.SpanKindServer   // answers a request
	Client   Kind = trace.SpanKindClient   // makes one
	Producer Kind = trace.SpanKindProducer // leaves a message for later
	Consumer Kind = trace.SpanKindConsumer // takes one up
)

// Start begins a span below the context's, named for a verb of the domain, such
// as "execution.run". End it.
func Start(ctx context.Context, name string, attrs ...Attr) (context.Context, Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, Span{}
	}
	return t.start(ctx, name, Internal, attrs)
}

// StartKind is Start for spans on the side of a conversation.
func StartKind(ctx context.Context, name string, kind Kind, attrs ...Attr) (context.Context, Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, Span{}
	}
	return t.start(ctx, name, kind, attrs)
}

func (t *target) start(ctx context.Context, name string, kind Kind, attrs []Attr) (context.Context, Span) {
	ctx, span := t.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(values(attrs)...))
	return ctx, Span{span}
}

func values(attrs []Attr) []attribute.KeyValue {
	kvs := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		kvs[i] = a.value()
	}
	return kvs
}

// Set adds attributes.
func (s Span) Set(attrs ...Attr) {
	if s.span != nil {
		s.span.SetAttributes(values(attrs)...)
	}
}

// Event notes that something happened within the span.
func (s Span) Event(name string, attrs ...Attr) {
	if s.span != nil {
		s.span.AddEvent(name, trace.WithAttributes(values(attrs)...))
	}
}

// Fail says that what the span is about went wrong, if err is not nil. Only the
// error's kind is recorded: its text may have data of the tenant.
func (s Span) Fail(err error) {
	if s.span != nil && err != nil {
		kind := kinds[fault.KindOf(err)]
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, kind)
	}
}

// kinds names faults as span attributes do.
var kinds = map[fault.Kind]string{
	fault.Internal: "internal", fault.Invalid: "invalid", fault.Unauthorized: "unauthorized", fault.Forbidden: "forbidden",
	fault.NotFound: "not_found", fault.Conflict: "conflict", fault.Exhausted: "exhausted", fault.Unavailable: "unavailable",
	fault.TooLarge: "too_large", fault.Unsupported: "unsupported",
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// propagator is the W3C's traceparent and tracestate. Baggage is not carried:
// what callers put there does not belong on the bus.
var propagator propagation.TraceContext

// carrier is the headers of a message. NATS' are case-sensitive, HTTP's are
// found in the form that Go gives them; both are read.
type carrier map[string][]string

func (c carrier) Get(key string) string {
	for _, k := range [...]string{key, canonical[key]} {
		if v := c[k]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

func (c carrier) Set(key, value string) { c[key] = []string{value} }

func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}

// canonical has the form in which net/http keeps the propagator's headers.
var canonical = map[string]string{"traceparent": "Traceparent", "tracestate": "Tracestate"}

// Carry returns ctx with the span of another context: for work that belongs to
// a trace and does not end with it.
func Carry(ctx, from context.Context) context.Context {
	if tracer.Load() == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(from))
}

// Inject writes the context's span into the headers of a message: a nats.Header,
// an http.Header or any such map. Without tracing it does nothing.
func Inject(ctx context.Context, header map[string][]string) {
	if tracer.Load() != nil {
		propagator.Inject(ctx, carrier(header))
	}
}

// Header returns headers with the context's span, nil without one: for messages
// that have no others.
func Header(ctx context.Context) map[string][]string {
	if tracer.Load() == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	header := map[string][]string{}
	Inject(ctx, header)
	return header
}

// Extract returns a context in which the span of a message's headers is the
// parent of those to come. Headers that make no sense are none.
func Extract(ctx context.Context, header map[string][]string) context.Context {
	if tracer.Load() == nil || len(header) == 0 {
		return ctx
	}
	return propagator.Extract(ctx, carrier(header))
}
