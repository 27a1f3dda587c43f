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
	"github.com/atoll-run/atoll/internal/core/upgrade"
)

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
	by := &tools.Caller{Principal: r.Caller, Session: r.Pool, TraceID: traceID, Agent: r.Agent, Template: r.Template}
	out, err := s.remote.Call(ctx, in.Params.Name, by, in.Params.Arguments)
	told()
	if err == nil {
		return r.fit(out, traceID)
	}
	s.remote.Abandon(ctx, in.Params.Name, by)
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
