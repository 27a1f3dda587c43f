// Package execute serves POST /v1/sandbox/execute, and the executions that it leaves.
package execute

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve executions.
type Handlers struct {
	Gateway *gateway.Gateway
	// CheckURL refuses webhook URLs; without it every one is refused.
	CheckURL func(ctx context.Context, url string) error

	// Tenants and Webhooks are required by operators.
	Tenants  Tenants
	Webhooks Redeliverer

	// StartPatience is how long the head of a new stream waits for its first output, so
	// that a run which cannot be started is refused with its own status; 250 ms if it is 0.
	StartPatience time.Duration
}

// defaultStartPatience is the StartPatience of a server.
const defaultStartPatience = 250 * time.Millisecond

// Tenants finds tenants; a *tenant.Admin does.
type Tenants interface {
	Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error)
}

// Redeliverer delivers the webhook of an ended execution again.
type Redeliverer interface {
	Redeliver(ctx context.Context, e *execution.Execution) error
}

// Operations are POST /v1/sandbox/execute, those of /v1/executions, and redelivery by operators.
func (h *Handlers) Operations() []httpapi.Operation {
	const (
		executions = "/v1/executions"
		execution1 = executions + "/{trace_id}"
	)
	traceID := httpapi.Param{Name: "trace_id", In: httpapi.InPath, Pattern: traceIDPattern.String(), Doc: "The trace_id of the execution."}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the execution does not exist, or belongs to another tenant.")
	redeliver := httpapi.ForOperators(httpapi.Operation{
		Method: http.MethodPost, Path: "/v1/admin/tenants/{tenant}/executions/{trace_id}/webhook", ID: "redeliverWebhook", Summary: "Deliver an execution's webhook again",
		Description: "Starts a new delivery with the same body and as many attempts as the first time. An execution without a webhook returns 409.",
		Answers:     []httpapi.Answer{{Status: http.StatusAccepted, Doc: "Accepted", Body: Redelivery{}}}, Serve: httpapi.Returns(h.redeliver),
	})
	redeliver[0].Params = append(redeliver[0].Params, httpapi.Param{Name: "trace_id", In: httpapi.InPath, Doc: traceID.Doc})
	return append(redeliver, []httpapi.Operation{
		{
			Method: http.MethodPost, Path: "/v1/sandbox/execute", ID: "runProgram", Tag: "sandbox", Summary: "Execute code", Scope: tenant.ScopeExecute,
			Description: "Runs " + language.Titles("or") + " in a fresh sandbox with a kernel of its own. The answer comes when the program has ended; with `Accept: application/x-ndjson` its output comes as it is written, one event a line; with `Prefer: respond-async` the answer comes at once and the result is sent to a webhook.",
			Params: []httpapi.Param{
				{Name: "Prefer", In: httpapi.InHeader, Doc: "respond-async: answer with 202 at once."},
				{Name: clientID, In: httpapi.InHeader, Doc: "Names the client. One whose name begins with baponi- is told by a code in error what ended its program."},
				{Name: "Idempotency-Key", In: httpapi.InHeader, Min: 1, Max: idempotency.MaxKey, Doc: "The same key with the same body within a day gives the same execution, not another one; with another body 409."},
			},
			Body: httpapi.JSON(ExecuteRequest{Code: new("import sys\nprint(sys.version)\nprint(sum(range(10)))"), Language: new(language.Python), Timeout: new(wire.Seconds(10))}),
			Answers: []httpapi.Answer{
				{Status: http.StatusOK, Doc: "The program ended. Its failure is a 200, too: see exit_code and error.", Body: ExecuteResponse{}, Media: []httpapi.Media{{Type: httpapi.NDJSON, Body: Event{}}}},
				{Status: http.StatusAccepted, Doc: "With Prefer: respond-async: it runs, or did before if the request repeats an earlier one.", Body: AcceptedResponse{}, Header: []httpapi.Param{
					{Name: "Preference-Applied", Doc: "respond-async"}, {Name: "Location", Doc: "The execution."},
				}},
				httpapi.Refusal(http.StatusMethodNotAllowed, "method_not_allowed: see Allow."),
				httpapi.Refusal(http.StatusConflict, "conflict: the Idempotency-Key was used with another body, or the thread is in use."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan or the budget; message and dimension name it."),
				httpapi.Refusal(http.StatusBadGateway, "bad_gateway: the server shut down meanwhile; the execution may continue."),
				{Status: http.StatusGatewayTimeout, Doc: "The program ran longer than its timeout and was ended. Its output so far is here.", Body: TimeoutResponse{}},
			},
			Serve: httpapi.WritesFrom(h.execute),
		},
		{
			Method: http.MethodGet, Path: executions, ID: "listExecutions", Tag: "executions", Summary: "List executions", Scope: tenant.ScopeRead,
			Description: "The tenant's executions, newest first, without their output. All filters must match.",
			Params: append([]httpapi.Param{
				{Name: "status", Doc: "Only those in this state.", Enum: names(execution.Statuses)},
				{Name: "language", Doc: "Only those of this language.", Enum: names(execution.Languages)},
				{Name: "thread_id", Pattern: threadIDPattern, Doc: "Executions that had the home of this thread."},
				{Name: "key", Doc: "Id of the key that asked for them."},
				{Name: metadataPrefix, Doc: "A value of the request's metadata, with the key's name in place of KEY. May occur for several keys."},
				{Name: "since", Type: httpapi.Time, Doc: "Created at this time or later."},
				{Name: "before", Type: httpapi.Time, Doc: "Created before this time."},
			}, httpapi.PageParams(20, 100)...),
			Answers: []httpapi.Answer{httpapi.OK(ExecutionPage{}, "A page.")},
			Serve:   httpapi.Returns(h.list),
		},
		{
			Method: http.MethodGet, Path: execution1, ID: "getExecution", Tag: "executions", Summary: "Get an execution", Description: "While it runs, `status` says how far it is; `stdout` and `stderr` are there when it has ended. Records are kept for the server's `keep_executions`.", Scope: tenant.ScopeRead,
			Params:  []httpapi.Param{traceID},
			Answers: []httpapi.Answer{httpapi.OK(Execution{}, "Its record, with its output once it has ended."), unknown},
			Serve:   httpapi.Writes(h.get),
		},
		{
			Method: http.MethodDelete, Path: execution1, ID: "deleteExecution", Tag: "executions", Summary: "Delete an execution that has ended", Scope: tenant.ScopeExecute,
			Description: "Its record goes with its output and the files that it gave back, and no longer counts toward max_outputs. Its audit row and what it used stay. An Idempotency-Key that named it may be used again.",
			Params:      []httpapi.Param{traceID},
			Answers: []httpapi.Answer{
				httpapi.NoContent("It is deleted."), unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: the execution is still running."),
			},
			Serve: httpapi.Does(h.delete),
		},
		{
			Method: http.MethodGet, Path: execution1 + "/output", ID: "getOutput", Tag: "executions", Summary: "Follow an execution's output", Scope: tenant.ScopeRead,
			Description: "Replays what the reconnect buffer has after `after`, continues live, and ends with the result. `Accept: text/event-stream` gives server-sent events with seq as their id. With `stream` it is the whole of that stream as bytes, of an execution that has ended; `Range` works.",
			Params: []httpapi.Param{
				traceID,
				{Name: "after", Type: httpapi.Int, Max: maxSeq, Doc: "The seq that the client has already; 0 for none."},
				{Name: "after_seq", Type: httpapi.Int, Max: maxSeq, Doc: "Another name of after, which clients of the original contract use."},
				{Name: "stream", Enum: []string{"stdout", "stderr"}, Doc: "Send this stream's bytes instead of events."},
				{Name: lastEventID, In: httpapi.InHeader, Type: httpapi.Int, Max: maxSeq, Doc: "In place of after, as EventSource sends it."},
			},
			Answers: []httpapi.Answer{
				{Status: http.StatusOK, Doc: "The events after a seq, as NDJSON or as server-sent events whose data they are; with stream, that stream's bytes.", Media: []httpapi.Media{
					{Type: httpapi.NDJSON, Body: Event{}}, {Type: httpapi.EventStream, Body: Event{}}, {Type: httpapi.OctetStream},
				}},
				{Status: http.StatusNoContent, Doc: "The execution has ended and the client has everything."},
				httpapi.Part("With stream and Range: a part of the bytes."),
				unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: with stream, the execution is still running."),
				httpapi.Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable: with stream, Range is beyond the end of the output."),
			},
			Serve: httpapi.Writes(h.output),
		},
		{
			Method: http.MethodGet, Path: execution1 + "/file", ID: "getExecutionFile", Tag: "executions", Summary: "Get a file that an execution gave back", Scope: tenant.ScopeRead,
			Description: "The files come from the request's outputs; the record lists them. `Range` works. Not in the original contract.",
			Params:      []httpapi.Param{traceID, {Name: "path", Required: true, Doc: "As the record lists it."}},
			Answers: []httpapi.Answer{
				{Status: http.StatusOK, Doc: "The file's bytes.", Media: []httpapi.Media{{Type: httpapi.OctetStream}}},
				httpapi.Part("With Range: a part of them."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the execution or the file does not exist, or the file has expired."),
				httpapi.Refusal(http.StatusConflict, "conflict: the execution is still running."),
				httpapi.Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable: Range is beyond the end of the file."),
			},
			Serve: httpapi.Writes(h.file),
		},
		{
			Method: http.MethodPost, Path: execution1 + "/cancel", ID: "cancelExecution", Tag: "executions", Summary: "Cancel a running execution", Scope: tenant.ScopeExecute,
			Description: "Kills the program at once. The answer comes when that is recorded.",
			Params:      []httpapi.Param{traceID},
			Answers: []httpapi.Answer{
				httpapi.OK(Execution{}, "Its record, with status cancelled."), unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: it has already ended."),
			},
			Serve: httpapi.Writes(h.cancel),
		},
	}...)
}

func names[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}
