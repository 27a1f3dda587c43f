package skilltool

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/loop/looptest"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// world is a gateway whose executions end as the test says.
type world struct {
	end    execution.Execution
	of     run.Request
	asked  execution.Request
	call   gateway.Call
	file   []byte // that the executions return
	said   []model.Item
	images sandboxtool.Extras
}

func (w *world) Policy(*tenant.Principal) execution.Policy {
	return execution.Policy{MaxTimeout: 10 * time.Second}
}

func (w *world) Execute(_ context.Context, _ *tenant.Principal, req execution.Request, c gateway.Call) (*execution.Execution, error) {
	w.asked, w.call = req, c
	e := w.end
	e.TraceID, e.Timeout = req.TraceID, req.Timeout
	return &e, nil
}

type closing struct{ io.ReadSeeker }

func (closing) Close() error { return nil }

func (w *world) Shown(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error) {
	return w.Whole(ctx, e, s)
}

func (w *world) Whole(_ context.Context, e *execution.Execution, _ execution.Stream) (io.ReadSeekCloser, error) {
	return closing{bytes.NewReader(e.Stdout)}, nil
}

func (w *world) File(_ context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error) {
	if _, _, ok := e.Files.Find(name); !ok {
		return nil, fault.New(fault.NotFound, "file %s not found", name)
	}
	return closing{bytes.NewReader(w.file)}, nil
}

func (w *world) EndKeyed(context.Context, tenant.ID, string) (*execution.Execution, error) {
	return nil, nil
}

func (w *world) Entrant(context.Context, tenant.ID, string, string) (tenant.Principal, error) {
	return tenant.Principal{}, nil
}

func (w *world) sandbox() *sandboxtool.Sandbox {
	return &sandboxtool.Sandbox{Runner: w, Callers: w, Extras: w.images, Programs: Programs()}
}

func (w *world) callOf(tool, arguments string) *loop.Call {
	return looptest.Call(&w.of, w.said, tool, arguments)
}

func (w *world) do(t *testing.T, tool, arguments string) (out *loop.Outcome, rejected error) {
	t.Helper()
	return looptest.Do(t, w.sandbox(), w.callOf(tool, arguments))
}
