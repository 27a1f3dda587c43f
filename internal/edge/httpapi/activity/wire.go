package activity

import (
	"encoding/hex"
	"time"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Activity is a call that ended, runs, or was rejected.
type Activity struct {
	TraceID string    `json:"trace_id" doc:"The trace id of the request or execution."`
	At      time.Time `json:"at" doc:"When the call ended; while it runs, when it began."`
	Kind    string    `json:"kind" enum:"code,command,file,sandbox,model,web,mcp,confirmation,other" doc:"The kind of call."`
	Source  string    `json:"source" doc:"The interface or tool that the caller used, as in the audit trail: execute, a tool such as shell, or an operation of a named sandbox such as process."`
	Tool    string    `json:"tool" doc:"The tool that a model called; empty if the call did not come from a model."`

	KeyID     string `json:"key_id" doc:"The key or token of the caller; for an agent's call, the one that began the turn."`
	KeyName   string `json:"key_name" doc:"The name of the key, or of the key that created the token; empty once the key is deleted."`
	AgentID   string `json:"agent_id" doc:"The agent that made the call; for execute_code, the caller's name for it. Empty without an agent."`
	SessionID string `json:"session_id" doc:"The agent's session; for a response, its container; for other calls, the session or turn that they name."`
	TurnID    string `json:"turn_id" doc:"The turn of the agent's session, or the response; empty if the call did not come from a model."`

	EnvironmentID   string `json:"environment_id" doc:"The environment of the call."`
	EnvironmentName string `json:"environment_name" doc:"The environment's name; empty once it is deleted."`
	SandboxID       string `json:"sandbox_id" doc:"The named sandbox; empty if the call used none."`
	ThreadID        string `json:"thread_id" doc:"The thread whose home directory the call used; empty if it used none."`

	Language   string  `json:"language"`
	CodeSHA256 string  `json:"executed_code_hash" doc:"SHA-256 of the code, command, path or model request, in hexadecimal digits."`
	Text       *string `json:"text" doc:"The first 4 KiB of the code or command, redacted. null unless the tenant keeps texts (audit_text)."`

	Status     string  `json:"status" enum:"running,ok,error,timeout,oom,cap_exceeded,provisioning,cancelled" doc:"The result of the call; running while it runs."`
	ExitCode   int     `json:"exit_code" doc:"The exit code of the program; 128+n when signal n ended it. 0 while it runs."`
	Reason     string  `json:"failure_reason" doc:"Why the call failed or was rejected; empty if it succeeded."`
	DurationMS int64   `json:"duration_ms" doc:"Duration in milliseconds."`
	Credits    float64 `json:"credits" doc:"Credits charged for the call."`
	CostUSD    float64 `json:"cost_usd" doc:"Cost of the model in US dollars. Usage also counts the prices of tools and windows."`

	OutboundHosts []string          `json:"outbound_hosts" doc:"Hosts that the call contacted, and hosts that the network policy rejected."`
	Metadata      map[string]string `json:"metadata" doc:"Other details of the call."`
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
	if e.Turn == "" { // a caller's metadata may also have the name tool
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
