package sandboxtest

import (
	"context"
	"io"
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// TestContractIsOfValues: whatever a method of the contract takes or returns is a value
// that can be written down, or one of a few streams.
func TestContractIsOfValues(t *testing.T) {
	w := walk{t: t, seen: map[reflect.Type]bool{}}
	for _, contract := range []reflect.Type{
		reflect.TypeFor[sandbox.Node](), reflect.TypeFor[sandbox.Handle](), reflect.TypeFor[sandbox.Guest](), reflect.TypeFor[codecontext.Contexts](),
		reflect.TypeFor[process.Output](), reflect.TypeFor[file.Archive](), reflect.TypeFor[file.Events](),
	} {
		for i := range contract.NumMethod() {
			m := contract.Method(i)
			for j := range m.Type.NumIn() {
				w.value(m.Type.In(j), contract.Name()+"."+m.Name)
			}
			for j := range m.Type.NumOut() {
				w.value(m.Type.Out(j), contract.Name()+"."+m.Name)
			}
		}
	}
}

// walk looks at types.
type walk struct {
	t    *testing.T
	seen map[reflect.Type]bool
}

// allowed are types that are looked at no further: contexts and errors, what leads to
// other parts of the contract, streams, and values that have a written form of their own.
var allowed = map[reflect.Type]bool{
	reflect.TypeFor[context.Context](): true, reflect.TypeFor[error](): true,
	reflect.TypeFor[sandbox.Handle](): true, reflect.TypeFor[sandbox.Guest](): true, reflect.TypeFor[codecontext.Contexts](): true,
	reflect.TypeFor[process.Output](): true, reflect.TypeFor[file.Archive](): true, reflect.TypeFor[file.Events](): true,
	reflect.TypeFor[io.Reader](): true, reflect.TypeFor[io.ReadCloser](): true, reflect.TypeFor[net.Conn](): true, reflect.TypeFor[codecontext.Sink](): true,
	reflect.TypeFor[<-chan struct{}](): true, // of Done
	reflect.TypeFor[*redact.Set]():     true, // made again from its Config
	reflect.TypeFor[time.Time]():       true, reflect.TypeFor[netip.AddrPort](): true, reflect.TypeFor[netip.Prefix](): true,
}

func (w *walk) value(v reflect.Type, where string) {
	if allowed[v] || w.seen[v] {
		return
	}
	w.seen[v] = true
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		w.value(v.Elem(), where)
	case reflect.Map:
		w.value(v.Key(), where)
		w.value(v.Elem(), where)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if !f.IsExported() && f.Name != "variables" { // which package tenant makes again from the rest
				w.t.Errorf("%s has a %s, whose %s is lost on the way", where, v, f.Name)
			}
			w.value(f.Type, where+": "+v.String()+"."+f.Name)
		}
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer, reflect.Uintptr:
		w.t.Errorf("%s has a %s, which cannot be sent", where, v)
	}
}
