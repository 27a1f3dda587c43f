package sandboxes

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Recorder writes audit rows of operations on named sandboxes.
type Recorder func(context.Context, *tenant.Principal, sandbox.Call) error

// Trail collects the audit row of one operation. Its methods do nothing on a nil Trail, which
// stands for an operation without an audit row.
//
// Call Leave before the first byte of the answer, or at the end of the operation. If Leave
// fails, the caller must not get the answer.
type Trail struct {
	// Begun says that a sandbox was asked to do something. Then even an invalid operation
	// leaves a row.
	Begun bool
	// Late says that the row is written at the end, because it tells how the operation ended.
	Late bool

	row    sandbox.Call
	record Recorder
	caller *tenant.Principal // nil until By
	left   bool              // the row was written, or none will be
	err    error             // why the row could not be written
}

// NewTrail returns the Trail of an operation. row has its trace id, source and beginning.
func NewTrail(record Recorder, row sandbox.Call) *Trail { return &Trail{record: record, row: row} }

// By records the caller of the operation, its session, and what it asks for.
func (t *Trail) By(caller *tenant.Principal, session, command string) {
	if t != nil {
		t.caller, t.row.Session, t.row.Command = caller, session, []byte(command)
	}
}

// On records the sandbox of the operation.
func (t *Trail) On(sb *sandbox.Sandbox) {
	if t != nil {
		t.row.Session, t.row.Mounts = sb.Session, storage.Labels(sb.Mounts)
		t.row.SetSandbox(sb)
	}
}

// Asks records what the operation asks for. The audit row contains a digest of it.
func (t *Trail) Asks(command string) {
	if t != nil {
		t.row.Command = []byte(command)
	}
}

// starts records the program that the operation starts.
func (t *Trail) starts(spec *process.Spec) {
	if t != nil {
		t.Asks(commandOf(spec))
	}
}

// begin records that a sandbox is asked to do something.
func (t *Trail) begin() {
	if t != nil {
		t.Begun = true
	}
}

// late has the row written at the end of the operation.
func (t *Trail) late() {
	if t != nil {
		t.Late = true
	}
}

// leaveRun writes the row of a run of code.
func (t *Trail) leaveRun(ctx context.Context, id codecontext.ID, res *codecontext.Result, failed error) error {
	if t != nil {
		t.row.SetRun(id, res, failed)
	}
	return t.Leave(ctx, nil)
}

// Drop writes no row, because the row of another operation covers this one.
func (t *Trail) Drop() {
	if t != nil {
		t.left = true
	}
}

// Err returns why the row could not be written.
func (t *Trail) Err() error {
	if t == nil {
		return nil
	}
	return t.err
}

// Leave writes the row of an operation that ended with err. Further calls return the result of
// the first one. An invalid operation leaves no row.
func (t *Trail) Leave(ctx context.Context, err error) error {
	if t == nil {
		return nil
	}
	if t.left {
		return t.err
	}
	t.left = true
	if t.caller == nil {
		if err == nil {
			t.err = errors.New("an operation succeeded without a caller for its audit row")
		}
		return t.err
	}
	if t.row.Ended(ctx, err, t.Begun) {
		t.err = t.record(ctx, t.caller, t.row)
	}
	return t.err
}
