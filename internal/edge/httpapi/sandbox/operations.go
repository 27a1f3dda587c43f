// Package sandbox serves named sandboxes: their records, files, processes, terminals, code
// contexts, previews and snapshots.
//
// The names of wire types are those of the schemas in the OpenAPI document.
package sandbox

import (
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Handlers serve named sandboxes.
type Handlers struct {
	Service *sandboxes.Service
}

const (
	sandboxesPath = "/v1/sandboxes"
	sandboxPath   = sandboxesPath + "/{sandbox}"
)

// Parameters of every operation on one sandbox.
var (
	nameParam    = httpapi.Param{Name: "sandbox", In: httpapi.InPath, Doc: "Its name in the session, or its sandbox_id: then the session does not matter.", Example: "dev"}
	sessionParam = httpapi.Param{Name: "session", Doc: "The session; default if not given. For the session of an agent the call is made in that session's environment."}
)

func onOne(more ...httpapi.Param) []httpapi.Param {
	return append([]httpapi.Param{nameParam, sessionParam}, more...)
}

// Refusals of operations on one sandbox.
var refusals = []httpapi.Answer{
	httpapi.Refusal(http.StatusNotFound, "not_found: the sandbox, process, context, preview or file does not exist, or belongs to another tenant."),
	httpapi.Refusal(http.StatusConflict, "conflict: the sandbox is lost, or in a state that forbids this."),
	httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan; message and dimension name it."),
}

var gone = httpapi.NoContent("It is gone.")

// Operations are those of /v1/sandboxes and /v1/snapshots, and of orphans.
func (h *Handlers) Operations() []httpapi.Operation {
	ops := slices.Concat(h.records(), h.snapshots(), h.files(), h.processes(), h.contexts(), h.previews())
	for i := range ops {
		op := &ops[i]
		op.Tag, op.Scope, op.Watched = "sandboxes", tenant.ScopeSandboxes, true
		if slices.ContainsFunc(op.Params, func(p httpapi.Param) bool { return p.Name == nameParam.Name }) {
			op.Answers = append(op.Answers, refusals...)
		}
	}
	return append(ops, h.orphans()...)
}

func (h *Handlers) records() []httpapi.Operation {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	one := []httpapi.Answer{httpapi.OK(Sandbox{}, "The sandbox.")}
	return []httpapi.Operation{
		{
			Method: post, Path: sandboxesPath, ID: "createSandbox", Summary: "Create a named sandbox", Description: "If the sandbox exists and matches the request, the answer is 200 instead of 201; if it does not match, 409. Beyond a limit of the plan the answer is 429 with its `dimension`, and beyond the machine's capacity 503. In both cases no sandbox is created.", Audit: "sandbox_create",
			Body: httpapi.JSON(NewSandbox{Name: new("dev"), SleepAfterMS: new(wire.Millis(600_000)), EnvVars: map[string]wire.Text{"STAGE": "test"}}),
			Answers: []httpapi.Answer{
				httpapi.Located(Sandbox{}, "It was created."), httpapi.OK(Sandbox{}, "The existing sandbox of that name, unchanged."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the snapshot does not exist, or belongs to another tenant."),
				httpapi.Refusal(http.StatusConflict, "conflict: the existing sandbox of that name has another image, or the snapshot does not support the request."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan; message and dimension name it."),
			},
			Serve: httpapi.Takes(h.create),
		},
		{
			Method: get, Path: sandboxesPath, ID: "listSandboxes", Summary: "List named sandboxes", Description: "Named sandboxes that run, sleep or are lost, without those that were destroyed. Listing them wakes none.",
			Params: []httpapi.Param{{Name: "session", Doc: "Only those of a session. For the session of an agent the list is that of the session's environment, which needs the scope `environments` if the key's environment is another one."}},
			Answers: []httpapi.Answer{
				httpapi.OK(SandboxList{}, "Those of the key's environment, or of the session's, by session and name."),
				httpapi.Refusal(http.StatusConflict, "conflict: the session belongs to an environment in which the key may not work."),
			}, Serve: httpapi.Returns(h.list),
		},
		{Method: get, Path: sandboxPath, ID: "getSandbox", Summary: "Get a named sandbox", Description: "Its state, limits, network and times. It does not count as a use, and wakes no sandbox.", Params: onOne(), Answers: one, Serve: httpapi.Returns(h.get)},
		{Method: del, Path: sandboxPath, ID: "deleteSandbox", Summary: "Delete a named sandbox", Description: "Its processes end and its files are deleted; snapshots of it stay. The name is free at once, and the record is kept for a day.", Audit: "sandbox_destroy", Params: onOne(), Answers: []httpapi.Answer{gone}, Serve: httpapi.Does(h.delete)},
		{
			Method: put, Path: sandboxPath + "/timeout", ID: "setSandboxTimeout", Summary: "Set when a sandbox sleeps and when it is deleted", Description: "Both are counted from now. `timeout_ms` is at most what the plan's `max_sandbox_life` leaves since it was made: beyond that the answer is 429.", Audit: "sandbox_timeout", Params: onOne(),
			Body:    httpapi.JSON(SandboxTimeout{TimeoutMS: new(wire.Millis(86_400_000)), SleepAfterMS: new(wire.Millis(600_000))}),
			Answers: one, Serve: httpapi.Takes(h.setTimeout),
		},
		{
			Method: put, Path: sandboxPath + "/network", ID: "setSandboxNetwork", Summary: "Set which part of its environment's network a sandbox may reach", Description: "The policy can only narrow the environment's. It applies to new connections immediately, and Atoll closes connections that it forbids. A sandbox created without a network cannot get one.", Audit: "sandbox_network", Params: onOne(),
			Body:    httpapi.JSON(environmentwire.NetworkChange{Enabled: new(true), AllowedHosts: &[]string{"api.example.com", "*.data.example.com"}}),
			Answers: one, Serve: httpapi.Takes(h.setNetwork),
		},
		{Method: post, Path: sandboxPath + "/sleep", ID: "sleepSandbox", Summary: "Put a sandbox to sleep at once", Description: "Freezes the sandbox without waiting for `sleep_after`. The next use wakes it with its processes. If it already sleeps, the call has no effect.", Audit: "sandbox_sleep", Params: onOne(), Answers: one, Serve: httpapi.Returns(h.sleep)},
		{Method: post, Path: sandboxPath + "/restart", ID: "restartSandbox", Summary: "Restart a sandbox with its environment's current settings", Description: "Atoll ends the sandbox's processes and starts it under the same name and id, with its environment's current image, limits, permissions and network. The sandbox keeps a requested size, `/home/user`, `/tmp`, `/var/tmp` and its storage. It loses files elsewhere and its own network policy. A sleeping sandbox wakes.", Audit: "sandbox_restart", Params: onOne(), Answers: one, Serve: httpapi.Returns(h.restart)},
		{
			Method: post, Path: sandboxPath + "/fork", ID: "forkSandbox", Summary: "Copy a sandbox, processes and all", Description: "The sandbox stands still while its memory is written and its files are copied; then all continue. Either all copies are made or none. Copies draw other random numbers and have another host name. Beyond a bound of the plan the answer is 429.", Audit: "sandbox_fork",
			Params:  onOne(httpapi.Param{Name: "count", Type: httpapi.Int, Min: 1, Max: sandbox.MaxForks, Default: 1, Doc: "How many copies; 1 if not given."}),
			Answers: []httpapi.Answer{httpapi.Created(SandboxList{}, "The copies, whose names begin with its name.")}, Serve: httpapi.Returns(h.fork),
		},
		{
			Method: get, Path: sandboxPath + "/metrics", ID: "getSandboxMetrics", Summary: "Get what a sandbox uses", Description: "Processor time, memory and disk as the host counts them. It wakes no sandbox.", Params: onOne(),
			Answers: []httpapi.Answer{httpapi.OK(SandboxMetrics{}, "Asking for it does not wake the sandbox.")}, Serve: httpapi.Returns(h.metrics),
		},
		{
			Method: get, Path: sandboxPath + "/ports", ID: "listSandboxPorts", Summary: "List the ports that programs of a sandbox listen on", Description: "TCP ports on which programs listen now. Open one to browsers by `PUT …/previews/{port}`.", Params: onOne(),
			Answers: []httpapi.Answer{httpapi.OK(SandboxPorts{}, "By number.")}, Serve: httpapi.Returns(h.ports),
		},
	}
}

func (h *Handlers) orphans() []httpapi.Operation {
	const path = "/v1/admin/sandboxes/orphans"
	answers := []httpapi.Answer{httpapi.OK(Orphans{}, "Their ids.")}
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: path, ID: "listOrphans", Tag: "admin", Summary: "List sandboxes on the machine that have no record", Description: "Folders and processes of named sandboxes on this server's machine of which no record tells, such as after the database was restored from a backup.", Scope: tenant.ScopeAdmin, Watched: true,
			Answers: answers, Serve: httpapi.Returns(h.listOrphans),
		},
		{
			Method: http.MethodDelete, Path: path, ID: "reapOrphans", Tag: "admin", Summary: "Remove sandboxes on the machine that have no record", Description: "It ends the processes and deletes the folders of every sandbox that `GET` on this path lists. A start of the server does the same.", Scope: tenant.ScopeAdmin, Watched: true, Audit: "sandbox_reap",
			Answers: answers, Serve: httpapi.Returns(h.reapOrphans),
		},
	}
}
