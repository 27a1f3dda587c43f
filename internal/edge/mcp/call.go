package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upgrade"
)

// cancelTime bounds ending what a cancelled call had started.
const cancelTime = 10 * time.Second

// call is the SDK's handler of every tool.
func (s *Server) call(ctx context.Context, in *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r := in.Extra.TokenInfo.Extra[requestKey].(*request)
	if one := r.session; one != nil {
		end, err := one.Call()
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return refusal(f), nil
		}
		defer end()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()

	r.out.hold()
	told := report(ctx, in)
	traceID := execution.NewTraceID()
	out, err := s.run(ctx, r, in.Params.Name, traceID, in.Params.Arguments)
	told()
	if err == nil {
		return r.fit(out, traceID)
	}
	if ctx.Err() != nil && executes(in.Params.Name) {
		s.abandon(ctx, r.Caller, traceID)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		if f.Err != nil {
			s.cfg.Log.DebugContext(ctx, "call of a tool refused", "trace_id", traceID, "tool", in.Params.Name, "error", err)
		}
		return refusal(f), nil
	}
	if ctx.Err() == nil {
		s.cfg.Log.ErrorContext(ctx, "call of a tool failed", "trace_id", traceID, "tool", in.Params.Name, "error", err)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong on our side; the server's log has it as " + traceID}
}

func executes(name string) bool {
	return name == tools.ExecuteCodeName || name == tools.SandboxExecuteName
}

// run calls the tool.
func (s *Server) run(ctx context.Context, r *request, name, traceID string, input []byte) (any, error) {
	scope := tenant.ScopeTools
	if name == tools.SandboxExecuteName {
		scope = tenant.ScopeExecute
	}
	if !r.Caller.May(scope) { // a key may have lost it since the session was opened
		return nil, fault.New(fault.Forbidden, "this key lacks the scope %q; ask an administrator to add it", scope)
	}
	c := &tools.Caller{Principal: r.Caller, Session: r.Pool, TraceID: traceID, Agent: r.Agent, Template: r.Template}
	if name == tools.SandboxExecuteName {
		return s.cfg.Tools.CallApart(ctx, c, input)
	}
	return s.cfg.Tools.Call(ctx, name, c, input)
}

// abandon ends the execution of a call that was cancelled. An execution continues without its
// client, who can ask for its result later; a tool's caller cannot.
func (s *Server) abandon(ctx context.Context, p *tenant.Principal, traceID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	err := s.cfg.Cancel(ctx, p.Tenant.ID, traceID)
	if kind := fault.KindOf(err); err != nil && kind != fault.NotFound && kind != fault.Conflict { // it was not begun, or has ended
		s.cfg.Log.WarnContext(ctx, "a cancelled execution may continue", "trace_id", traceID, "error", err)
	}
}

// refusal tells a model what to change.
func refusal(f *fault.Error) *mcp.CallToolResult {
	text := f.Msg + upgrade.Advice(f)
	if f.Dimension != "" {
		text += " (limit: " + f.Dimension
		if !f.ResetsAt.IsZero() {
			text += ", resets at " + f.ResetsAt.UTC().Format(time.RFC3339)
		}
		text += ")"
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}
