package sdk

import (
	"context"
	"io"
	"maps"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// call is a method of the library as a scenario calls it.
type call func(ctx context.Context, c *sdk.Client, a *args) (any, error)

// calls are all methods that answer once, by the names of calls.json.
var calls = joined(runCalls, sandboxCalls, agentCalls, adminCalls)

func joined(parts ...map[string]call) map[string]call {
	all := map[string]call{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// streams are the methods that answer with events.
var streams = map[string]func(ctx context.Context, c *sdk.Client, a *args) stream{
	"executions.stream": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.StreamExecution(ctx, body[sdk.ExecuteRequest](a)))
	},
	"executions.follow": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.FollowExecution(ctx, a.text("trace_id"), a.number("after")))
	},
	"sandboxes.exec_stream": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.StreamExec(ctx, a.sandbox(), command(a)))
	},
	"sandboxes.processes.follow": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.FollowProcess(ctx, a.sandbox(), a.text("process"), a.number("after"), true))
	},
	"sandboxes.files.watch": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.SandboxFiles(a.sandbox()).Watch(ctx, a.text("path"), a.flag("recursive")))
	},
	"contexts.stream": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.StreamCode(ctx, a.sandbox(), a.text("context"), body[sdk.RunCode](a)))
	},
	"responses.stream": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.StreamResponse(ctx, body[sdk.CreateResponse](a)))
	},
	"responses.follow": func(ctx context.Context, c *sdk.Client, a *args) stream {
		after := int64(-1)
		if _, ok := a.left["starting_after"]; ok {
			after = a.number("starting_after")
		}
		return untyped(c.FollowResponse(ctx, a.text("response_id"), after))
	},
	"sessions.stream": func(ctx context.Context, c *sdk.Client, a *args) stream {
		a.flag("deltas") // which it always asks for
		return untyped(c.StreamSession(ctx, a.text("session_id"), body[sdk.NewSessionEvent](a)))
	},
	"sessions.follow": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.FollowSession(ctx, a.text("session_id"), a.text("after"), a.flag("deltas")))
	},
	"sessions.thread_follow": func(ctx context.Context, c *sdk.Client, a *args) stream {
		return untyped(c.FollowSessionThread(ctx, a.text("session_id"), a.text("thread_id"), a.text("after"), a.flag("deltas")))
	},
}

// runCalls run code, and read what is left of it.
var runCalls = map[string]call{
	"executions.run": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Execute(ctx, body[sdk.ExecuteRequest](a))
	},
	"executions.start": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.StartExecution(ctx, body[sdk.ExecuteRequest](a))
	},
	"executions.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Executions(a.query("metadata", "limit", "status", "language", "thread_id", "key", "since", "before")).All(ctx, 0))
	},
	"executions.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Execution(ctx, a.text("trace_id"))
	},
	"executions.wait": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.WaitExecution(ctx, a.text("trace_id"))
	},
	"executions.cancel": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CancelExecution(ctx, a.text("trace_id"))
	},
	"executions.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteExecution(ctx, a.text("trace_id"))
	},
	"executions.output": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		id, stream := a.text("trace_id"), a.text("stream")
		return download(func(w io.Writer) error { return c.Output(ctx, id, stream, w) })
	},
	"executions.file": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		id, path := a.text("trace_id"), a.text("path")
		return download(func(w io.Writer) error { return c.ExecutionFile(ctx, id, path, w) })
	},
	"threads.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Threads(a.query("prefix", "limit")).All(ctx, 0))
	},
	"threads.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Thread(ctx, a.text("thread_id"))
	},
	"threads.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeThread(ctx, a.text("thread_id"), body[sdk.ThreadChange](a))
	},
	"threads.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteThread(ctx, a.text("thread_id"))
	},
	"threads.export": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		id := a.text("thread_id")
		return download(func(w io.Writer) error { return c.ExportThread(ctx, id, w) })
	},
	"threads.import": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ImportThread(ctx, a.text("thread_id"), a.content())
	},
	"threads.files.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ThreadFiles(a.text("thread_id")).List(a.text("path")).All(ctx, 0))
	},
	"threads.files.read": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		id, path := a.text("thread_id"), a.text("path")
		return download(func(w io.Writer) error { return c.ThreadFiles(id).Read(ctx, path, w) })
	},
	"threads.files.write": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ThreadFiles(a.text("thread_id")).Write(ctx, a.text("path"), a.content())
	},
	"threads.files.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.ThreadFiles(a.text("thread_id")).Delete(ctx, a.text("path"))
	},
	"threads.files.sign": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ThreadFiles(a.text("thread_id")).Sign(ctx, body[sdk.SignRequest](a))
	},
	"storage.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.StorageFiles(body[sdk.FilesListRequest](a)).All(ctx, 0))
	},
	"storage.upload_url": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.UploadURL(ctx, body[sdk.UploadRequest](a))
	},
	"storage.download_url": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.DownloadURL(ctx, body[sdk.DownloadRequest](a))
	},
	"files.upload": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.UploadFile(ctx, a.text("filename"), a.content(), a.ms("expires_in_seconds")*1000)
	},
	"files.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Files(a.query("limit", "ids", "scope_id")).All(ctx, 0))
	},
	"files.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.File(ctx, a.text("file_id"))
	},
	"files.content": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		id := a.text("file_id")
		return download(func(w io.Writer) error { return c.ReadFile(ctx, id, w) })
	},
	"files.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteFile(ctx, a.text("file_id"))
	},
	"usage.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.OwnUsage(ctx, a.query("since", "before", "group_by", "agent", "session_id"))
	},
	"approvals.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Approvals(a.query("status", "agent", "session_id", "response_id")).All(ctx, 0))
	},
	"approvals.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Approval(ctx, a.text("approval_id"))
	},
	"approvals.decide": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.DecideApproval(ctx, a.text("approval_id"), body[sdk.Decision](a))
	},
	"activity.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Activity(a.query(activityFilters...)).All(ctx, 0))
	},
}

// activityFilters are the parameters of a list of who ran what.
var activityFilters = []string{"since", "before", "key", "agent", "session_id", "turn_id", "environment", "sandbox_id", "thread_id", "kind", "source", "status", "executed_code_hash"}
