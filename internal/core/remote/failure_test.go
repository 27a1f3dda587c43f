package remote

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

var errTest = errors.New("a test")

// encoding and decoding have the settings of the bus.
var (
	encoding, _ = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode()
	decoding, _ = cbor.DecOptions{TagsMd: cbor.TagsForbidden, IndefLength: cbor.IndefLengthForbidden, UTF8: cbor.UTF8DecodeInvalid}.DecMode()
)

// send encodes an error and decodes it again.
func send(t *testing.T, err error) error {
	t.Helper()
	b, failed := encoding.Marshal(EncodeError(err))
	if failed != nil {
		t.Fatal(failed)
	}
	var f *Failure
	if err := decoding.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f.Decode()
}

func TestFailure(t *testing.T) {
	errs := map[string]error{
		"wrapped": fmt.Errorf("x: %w", fault.Wrap(fault.Conflict, process.ErrGone, "msg")), "plain": errTest, "code": &fault.Error{Kind: fault.Invalid, Msg: "m", Code: "c", RetryAfter: time.Second},
		"eof": io.EOF, "joined": errors.Join(io.ErrUnexpectedEOF, errTest), "not begun": codecontext.ErrNotBegun, "not UTF-8": errors.New("\xff"), "empty": errors.New(""),
		"limit": fault.Limit("concurrency", time.Unix(5, 6).In(time.FixedZone("", 3600)), "too many"), "wrapped sentinel": fmt.Errorf("x: %w", sandbox.ErrNotFound),
	}
	for kind := fault.Internal; kind <= fault.Unsupported; kind++ {
		errs[fmt.Sprint("kind ", kind)] = fault.Wrap(kind, errTest, "a message")
	}
	for name, s := range sentinels {
		if errs[name] = s; send(t, s) != s {
			t.Errorf("%s came back as another error", name)
		}
	}
	for name, want := range errs {
		got := send(t, want)
		if got.Error() != want.Error() || fault.KindOf(got) != fault.KindOf(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		for _, s := range sentinels {
			if errors.Is(got, s) != errors.Is(want, s) {
				t.Errorf("%s: is %v: %v", name, s, errors.Is(got, s))
			}
		}
		a, _ := errors.AsType[*fault.Error](got)
		b, _ := errors.AsType[*fault.Error](want)
		if (a == nil) != (b == nil) || b != nil && (a.Msg != b.Msg || a.Code != b.Code || a.Dimension != b.Dimension || !a.ResetsAt.Equal(b.ResetsAt) || a.RetryAfter != b.RetryAfter || a.Error() != b.Error()) {
			t.Errorf("%s: got %+v, want %+v", name, a, b)
		}
	}
	if err := send(t, nil); err != nil {
		t.Error(err)
	}
	if err := send(t, &fault.Error{Kind: fault.Exhausted, ResetsAt: time.Unix(1<<40, 0)}); fault.KindOf(err) != fault.Exhausted {
		t.Error(err)
	}
	elsewhere := &sandbox.ElsewhereError{Sandbox: &sandbox.Sandbox{Name: "x"}, Executor: "exe_1"}
	for _, err := range []error{elsewhere, fmt.Errorf("y: %w", elsewhere)} {
		got, ok := errors.AsType[*sandbox.ElsewhereError](send(t, err))
		if !ok || !reflect.DeepEqual(got, elsewhere) {
			t.Errorf("got %+v", got)
		}
	}
}

// TestHostileFailure decodes values that EncodeError never returns.
func TestHostileFailure(t *testing.T) {
	far := time.Unix(1<<40, 0)
	for _, f := range []*Failure{
		{}, {Same: true}, {Is: []string{"unknown"}, Same: true}, {Fault: &Fault{Kind: 255, ResetsAt: far, RetryAfter: -1}},
		{Fault: &Fault{Cause: "x"}, Elsewhere: &sandbox.Sandbox{CreatedAt: far}, Is: []string{"eof", "eof"}},
	} {
		check(t, f)
	}
}

// check decodes a message and encodes its error again.
func check(t *testing.T, f *Failure) {
	err := f.Decode()
	if err == nil {
		t.Fatalf("%+v is no error", f)
	}
	again := EncodeError(err).Decode()
	if again.Error() != err.Error() || fault.KindOf(again) != fault.KindOf(err) {
		t.Errorf("%v came back as %v", err, again)
	}
	for _, s := range sentinels {
		if errors.Is(again, s) != errors.Is(err, s) {
			t.Errorf("%v came back as %v", err, again)
		}
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		if e.Kind > fault.Unsupported || e.RetryAfter < 0 {
			t.Errorf("got %+v", e)
		}
		if _, err := e.ResetsAt.MarshalText(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzFailure decodes arbitrary bytes.
func FuzzFailure(f *testing.F) {
	for _, err := range []error{io.EOF, errors.Join(io.EOF, errTest), fault.Limit("x", time.Unix(5, 0), "y"), &sandbox.ElsewhereError{Sandbox: &sandbox.Sandbox{}}, fmt.Errorf("x: %w", fault.Wrap(fault.Conflict, process.ErrGone, "msg"))} {
		b, failed := encoding.Marshal(EncodeError(err))
		if failed != nil {
			f.Fatal(failed)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m *Failure
		if err := decoding.Unmarshal(b, &m); err == nil && m != nil {
			check(t, m)
		}
	})
}
