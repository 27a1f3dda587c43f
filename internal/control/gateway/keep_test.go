package gateway_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// TestKeep keeps files of named sandboxes.
func TestKeep(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	keep := func(key string, r io.Reader) (*execution.Execution, error) {
		req := gatewaytest.Request("share")
		req.Outputs = []string{"a.txt"}
		return w.Keep(t.Context(), p, req, gateway.Call{Source: execution.SourceResponse, Delivery: execution.Inline, IdempotencyKey: key}, r, []string{"a secret of 24 characters"})
	}
	there := func(e *execution.Execution) bool {
		t.Helper()
		_, err := w.Blobs.Size(t.Context(), execution.FilesName(p.Tenant.ID, e.TraceID))
		if err != nil && fault.KindOf(err) != fault.NotFound {
			t.Fatal(err)
		}
		return err == nil
	}
	e, err := keep("one", strings.NewReader("x a secret of 24 characters"))
	if err != nil || e.Status != execution.Success {
		t.Fatalf("%+v, %v", e, err)
	}
	in, err := w.File(t.Context(), e, "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err := errors.Join(err, in.Close()); err != nil || string(data) != "x [redacted]" || e.Files.Files[0].Bytes != int64(len(data)) {
		t.Errorf("it has %q as %+v, %v", data, e.Files, err)
	}
	again, err := keep("one", iotest.ErrReader(errors.New("it is read twice")))
	if err != nil || again.TraceID != e.TraceID {
		t.Errorf("again: %+v, %v", again, err)
	}
	for key, r := range map[string]io.Reader{
		"large": io.LimitReader(zeros{}, execution.MaxOutputBytes+1), "broken": io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("broken"))),
	} {
		if _, err := keep(key, r); err == nil || key == "large" != (fault.KindOf(err) == fault.TooLarge) {
			t.Errorf("%s: %v", key, err)
		}
	}

	// The process that stored it ended before it was recorded.
	lost := record(t, w, p.Tenant.ID, time.Minute)
	if err := w.Blobs.Put(t.Context(), execution.FilesName(p.Tenant.ID, lost.TraceID), strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	w.Sweep(t.Context(), time.Now().Add(time.Second), time.Now())
	if there(lost) || !there(e) {
		t.Error("the files of what was lost are left, or others gone")
	}
	// It is ended as lost while it is stored.
	late, err := keep("late", readerFunc(func([]byte) (int, error) {
		w.Sweep(t.Context(), time.Now().Add(time.Second), time.Now())
		return 0, io.EOF
	}))
	if err != nil || late.Status != execution.Failed || there(late) {
		t.Errorf("ended as lost: %+v, %v", late, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
