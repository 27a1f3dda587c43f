package activity

import (
	"encoding/hex"
	"time"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Activity is a call that ran, was refused, or still runs.
type Activity struct {
	TraceID string    `json:"trace_id" doc:"Names the request or execution."`
	At      time.Time `json:"at" doc:"When it ended; when it began, while it runs."`
	Kind    string    `json:"kind" enum:"code,command,file,sandbox,model,web,mcp,confirmation,other" doc:"What was done."`
	Source  string    `json:"source" doc:"What was called, as in the audit trail: execute, a tool such as shell, or a use of a named sandbox such as process."`
	Tool    string    `json:"tool" doc:"The tool that a model called; empty for calls of no model."`

	KeyID     string `json:"key_id" doc:"The key or token that called; of an agent's work, the one that began the turn."`
	KeyName   string `json:"key_name" doc:"The name of the key, or of the key that made the token; empty once it is deleted."`
	AgentID   string `json:"agent_id" doc:"The agent that worked; of execute_code, as the caller names it. Empty for none."`
	SessionID string `json:"session_id" doc:"The agent's session; of a response, its container; of other calls, the session or turn that they name."`
	TurnID    string `json:"turn_id" doc:"The turn of the agent's session, or the response; empty for calls of no model."`

	EnvironmentID   string `json:"environment_id" doc:"Where it ran."`
	EnvironmentName string `json:"environment_name" doc:"Its name; empty once it is deleted."`
	SandboxID       string `json:"sandbox_id" doc:"The named sandbox; empty for none."`
	ThreadID        string `json:"thread_id" doc:"The thread whose home directory it had; empty for none."`

	Language   string  `json:"language"`
	CodeSHA256 string  `json:"executed_code_hash" doc:"SHA-256 of the code, command, path or request to a model, in hexadecimal digits."`
	Text       *string `json:"text" doc:"The first 4 KiB of the code or command, redacted. null unless the tenant keeps texts (audit_text)."`

	Status     string  `json:"status" enum:"running,ok,error,timeout,oom,cap_exceeded,provisioning,cancelled" doc:"How it ended."`
	ExitCode   int     `json:"exit_code" doc:"The exit code of the program; 128+n when signal n ended it. 0 while it runs."`
	Reason     string  `json:"failure_reason" doc:"Why it failed or was refused; empty if it did not."`
	DurationMS int64   `json:"duration_ms" doc:"How long it took, in milliseconds."`
	Credits    float64 `json:"credits" doc:"What it was charged, in credits."`
	CostUSD    float64 `json:"cost_usd" doc:"What the model cost, in US dollars. Prices of tools and windows are in usage."`

	OutboundHosts []string          `json:"outbound_hosts" doc:"Hosts that it contacted, and what the network policy refused."`
	Metadata      map[string]string `json:"metadata" doc:"What else is on record of the call."`
}

func activityOf(e *activity.Entry) Activity {
	out := Activity{
		TraceID: e.TraceID, At: e.CreatedAt, Kind: string(e.Kind()), Source: e.Source, Tool: e.Metadata["tool"],
		KeyID: e.Key, KeyName: e.KeyName, AgentID: e.Agent, SessionID: e.SessionID, TurnID: e.Turn,
		EnvironmentID: e.Environment, EnvironmentName: e.EnvironmentName, SandboxID: e.Sandbox, ThreadID: e.Thread,
		Language: e.Language, CodeSHA256: hex.EncodeToString(e.CodeSHA256[:]), Text: httpapi.OrNull(e.Text),
		Status: string(e.ExitStatus), ExitCode: e.ExitCode, Reason: e.FailureReason, DurationMS: e.DurationMS, Credits: e.Credits, CostUSD: e.Cost.Dollars(),
		OutboundHosts: append([]string{}, e.OutboundHosts...), Metadata: e.Metadata,
	}
	if e.Turn == "" { // a caller may call metadata so
		out.Tool = ""
	}
	if e.Running {
		out.Status = activity.Running
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}
