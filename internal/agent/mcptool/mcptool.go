// Package mcptool gives runs the tools of MCP servers that their callers name.
//
// It lists the tools before a run begins and records them with the run, so every process that
// drives the run gives the model the same tools. The record encrypts the server's address and
// credentials. A call that may have effects is made only once; if its outcome is unknown, the
// model sees that.
package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Handler is the run.Tool.Handler of the tools here, and the source of their audit rows.
const Handler = "mcp"

// MaxCalls is how many calls of a tenant one server has under way at once.
const MaxCalls = 128

// maxToModel bounds the bytes of a result that the model is given.
const maxToModel = 64 << 10

// Sealer encrypts what only the server may read.
type Sealer interface {
	Seal(plain []byte, place string) []byte
	Open(sealed []byte, place string) ([]byte, error)
}

// Callers returns the principal that started a run; *tenant.Authority implements it.
type Callers interface {
	Entrant(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
}

// Config configures Tools.
type Config struct {
	Client  *mcpclient.Client
	Seal    Sealer
	Callers Callers
	// Record writes the audit row of a call and charges for it.
	Record func(context.Context, *tenant.Principal, sandbox.Call) error
	// Token returns what the vaults of a run have for a server, "" for nothing. rejected is a
	// token that the server did not take. Nil where runs have no vaults.
	Token func(ctx context.Context, t tenant.ID, vaults []vault.ID, url, rejected string) (string, error)
	// Cover covers secrets in what servers say, for a caller; nil for nothing to cover.
	Cover func(p *tenant.Principal, text string) (string, error)
}

// Tools implements loop.Handler for the tools here, and prepares them for a run.
type Tools struct {
	cfg Config

	mu   sync.Mutex
	busy map[tenant.ID]int // guarded by mu: calls under way
}

var _ loop.Handler = (*Tools)(nil)

// New returns Tools.
func New(cfg Config) *Tools { return &Tools{cfg: cfg, busy: map[tenant.ID]int{}} }

func place(t tenant.ID) string { return "runs/mcp/" + t }

// sealed is what a Remote has sealed.
type sealed struct {
	Target  mcpclient.Target
	Allowed Filter // what its tools were listed with
}

func (t *Tools) seal(id tenant.ID, s sealed) ([]byte, error) {
	plain, err := json.Marshal(s)
	return t.cfg.Seal.Seal(plain, place(id)), err
}

func (t *Tools) open(id tenant.ID, r *run.Remote) (s sealed, err error) {
	plain, err := t.cfg.Seal.Open(r.Sealed, place(id))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(plain, &s)
}

// session names the session of a run with a server. That with a program is one for all turns of
// the session in whose sandbox it runs, that a key has begun: another key may see less.
func session(id run.ID, label string, to *mcpclient.Target) string {
	of := string(id)
	if to.Command != nil {
		of = to.Command.Session + "/" + to.Command.Key
	}
	return of + "/" + label
}

// Show implements loop.Handler.
func (t *Tools) Show(c *loop.Call) (*run.Item, error) {
	use := &run.ToolUse{CallID: c.Call.ID, Tool: c.Tool.RemoteName, Server: c.Tool.Server}
	if c.Tool.Approve {
		use.Approval = c.Request.Approval(c.Call.ID)
	}
	it := &run.Item{Status: run.ItemInProgress, Use: use}
	arguments, err := argumentsOf(c.Call.Arguments)
	use.Input = arguments
	return it, err
}

// argumentsOf are the arguments of a call, which a model may have written badly.
func argumentsOf(text string) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), nil
	}
	if _, err := wire.Weigh("the arguments", []byte(text)); err != nil {
		return json.RawMessage("{}"), err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return json.RawMessage("{}"), fault.New(fault.Invalid, "the arguments must be a JSON object")
	}
	return json.RawMessage(text), nil
}

// Do implements loop.Handler.
func (t *Tools) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	remote := c.Request.Remote(c.Tool.Server)
	tool := toolOf(remote, c.Tool.RemoteName)
	if tool == nil {
		return nil, fmt.Errorf("run %s has a tool of the server %q, which is not one of its servers", c.Run.ID, c.Tool.Server)
	}
	to, err := t.open(c.Run.Tenant, remote)
	if err != nil {
		return nil, fmt.Errorf("run %s: the server %q: %w", c.Run.ID, c.Tool.Server, err)
	}
	p, err := t.cfg.Callers.Entrant(ctx, c.Run.Tenant, c.Run.Key, c.Run.Environment)
	if k := fault.KindOf(err); k == fault.Unauthorized || k == fault.Forbidden || k == fault.NotFound {
		return refused(c, message(err)), nil
	}
	if err != nil {
		return nil, err
	}
	row := sandbox.Call{
		TraceID: execution.NewTraceID(), Source: Handler, Session: c.Run.Sandbox, Began: time.Now(), Status: audit.OK,
		Command:  []byte(c.Tool.RemoteName + "\n" + c.Call.Arguments),
		Metadata: map[string]string{"run": string(c.Run.ID), "server_label": c.Tool.Server, "tool": c.Tool.RemoteName},
	}
	row.SetOrigin(c.Run.Origin(c.Request, c.Call.Name))
	if host := to.Target.Host(); host != "" {
		row.Hosts = []string{host}
	}
	if c.Begun && !c.Tool.Idempotent {
		row.Status, row.Reason = audit.Error, loop.ErrUnknown.Error()
		if err := t.cfg.Record(ctx, &p, row); err != nil {
			return nil, err
		}
		return nil, loop.ErrUnknown
	}
	if c.Run.Session != "" { // the environment may have changed
		if err := allowed(&p, &to.Target); err != nil {
			return refused(c, message(err)), nil
		}
	}
	if !t.admit(c.Run.Tenant) {
		return refused(c, fmt.Sprintf("the tenant has %d calls of MCP servers in progress, which is the most", MaxCalls)), nil
	}
	defer t.done(c.Run.Tenant)
	result, err := t.call(ctx, c, to.Target, tool)
	if storeFailed(err) {
		return nil, err // nothing was asked
	}
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); errors.Is(cause, loop.ErrLeft) {
			return nil, cause // the process that goes on with the run records it
		}
		row.Status, row.Reason = audit.Cancelled, "the run was cancelled"
		return nil, errors.Join(context.Cause(ctx), t.cfg.Record(ctx, &p, row))
	}
	why := message(err)
	if err := t.cover(&p, &result.Text, &why); err != nil {
		return nil, err
	}
	out := t.outcome(c, result, err, why)
	row.StdoutBytes = int64(len(result.Text))
	if why := out.Item.Use.Error; why != "" {
		row.Status, row.Reason = audit.Error, "the call failed"
		if err != nil {
			row.Reason = why
		}
	}
	return out, t.cfg.Record(ctx, &p, row)
}

// allowed refuses a server that the environment of a caller does not allow.
func allowed(p *tenant.Principal, to *mcpclient.Target) error {
	if to.Command != nil {
		return p.Starts()
	}
	return p.Asks(to.URL)
}

// call asks the server, and once more where that is safe and the first time was cut short.
func (t *Tools) call(ctx context.Context, c *loop.Call, to mcpclient.Target, tool *run.RemoteTool) (*mcpclient.Result, error) {
	arguments, err := argumentsOf(c.Call.Arguments)
	if err != nil {
		return nil, err // Show has read them
	}
	ctx = outbound.For(ctx, c.Run.Tenant)
	name := session(c.Run.ID, c.Tool.Server, &to)
	var r *mcpclient.Result
	err = t.authorized(ctx, c.Run.Tenant, c.Request.Vaults, to, func(to mcpclient.Target) (err error) {
		r, err = t.cfg.Client.Call(ctx, name, to, tool, arguments)
		if errors.Is(err, mcpclient.ErrUnknown) && c.Tool.Idempotent && ctx.Err() == nil {
			r, err = t.cfg.Client.Call(ctx, name, to, tool, arguments)
		}
		return err
	})
	if r == nil {
		r = &mcpclient.Result{}
	}
	return r, err
}

func (t *Tools) admit(id tenant.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] >= MaxCalls {
		return false
	}
	t.busy[id]++
	return true
}

func (t *Tools) done(id tenant.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id]--; t.busy[id] == 0 {
		delete(t.busy, id)
	}
}

func toolOf(r *run.Remote, name string) *run.RemoteTool {
	if r == nil {
		return nil
	}
	for i := range r.Tools {
		if r.Tools[i].Name == name {
			return &r.Tools[i]
		}
	}
	return nil
}

// refused is the outcome of a call that was not made because of what the caller may do.
func refused(c *loop.Call, why string) *loop.Outcome {
	out := failed(c, why)
	out.Refused = true
	return out
}

// failed is the outcome of a call that has no answer.
func failed(c *loop.Call, why string) *loop.Outcome {
	use := *c.Item.Use
	use.Error = why
	return &loop.Outcome{
		Result: model.Result{Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: "The call was not made: " + why}}},
		Item:   &run.Item{Status: run.ItemFailed, Use: &use},
	}
}

// outcome is what a call came to; why says what is wrong with err.
func (t *Tools) outcome(c *loop.Call, r *mcpclient.Result, err error, why string) *loop.Outcome {
	var out *loop.Outcome
	switch {
	case errors.Is(err, mcpclient.ErrUnknown):
		out = failed(c, "outcome unknown: "+why)
		out.Result.Parts[0].Text = "outcome unknown: " + why + "; the call is not repeated because it may have had effects"
	case err != nil:
		out = failed(c, why)
	default:
		use := *c.Item.Use
		use.Output, _ = json.Marshal(r.Text) // of a string: never fails
		out = &loop.Outcome{
			Result: model.Result{Failed: r.Failed, Parts: []model.Part{{Kind: model.PartText, Text: told(r.Text)}}},
			Item:   &run.Item{Status: run.ItemCompleted, Use: &use},
		}
		for _, image := range r.Images {
			use.Images = append(use.Images, model.Part{Kind: model.PartImage, MediaType: image.MediaType, Data: image.Data})
		}
		out.Result.Parts = append(out.Result.Parts, use.Images...)
		if r.Failed {
			out.Item.Status, use.Error, use.Output = run.ItemFailed, r.Text, nil
			if use.Error == "" {
				use.Error = "the tool says that it failed"
			}
		}
	}
	out.Item.Use.Changed = r.Changed
	return out
}

// cover covers texts in place.
func (t *Tools) cover(p *tenant.Principal, texts ...*string) error {
	if t.cfg.Cover == nil {
		return nil
	}
	for _, text := range texts {
		covered, err := t.cfg.Cover(p, *text)
		if err != nil {
			return err
		}
		*text = covered
	}
	return nil
}

func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// told is as much of a result as the model is given.
func told(text string) string {
	if len(text) <= maxToModel {
		return text
	}
	const half = maxToModel / 2
	return strings.ToValidUTF8(text[:half], "") + fmt.Sprintf("\n[%d bytes omitted]\n", len(text)-2*half) + strings.ToValidUTF8(text[len(text)-half:], "")
}
