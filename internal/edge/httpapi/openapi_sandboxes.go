package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// sandboxes describes named sandboxes as resources.
func (d describer) sandboxes(doc *huma.OpenAPI) {
	name := &huma.Param{Name: "sandbox", In: "path", Required: true, Description: "Its name in the session, or its sandbox_id: then the session does not matter.", Schema: text()}
	session := queryParam("session", "The session; default if not given.", text())
	process := &huma.Param{Name: "process", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString, Pattern: processID.String()}}
	path := queryParam("path", "An absolute path, or one from /home/user. Its bytes need not be UTF-8.", text())
	path.Required = true
	folder := queryParam("path", "The folder; /home/user if not given.", text())
	unknown := d.json("not_found: there is no such sandbox, process or file, or it is not the caller's.", ErrorResponse{})
	conflict := d.json("conflict: the sandbox is lost, or in a state that forbids this.", ErrorResponse{})
	limited := d.json("rate_limited: over a limit of the plan; the message and dimension name it.", ErrorResponse{})
	busy := d.json("service_unavailable: nothing was started, try again after Retry-After seconds.", ErrorResponse{})
	binary := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	octets, tar := map[string]*huma.MediaType{"application/octet-stream": binary}, map[string]*huma.MediaType{"application/x-tar": binary}
	gone := &huma.Response{Description: "It is gone."}
	content := func(r *huma.Response, content map[string]*huma.MediaType) *huma.Response {
		r.Content = content
		return r
	}
	json := func(body any) *huma.RequestBody {
		return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(body)}}
	}
	add := func(method, path, id, summary string, params []*huma.Param, body *huma.RequestBody, responses map[string]*huma.Response) {
		responses["503"] = busy
		doc.AddOperation(&huma.Operation{
			OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"sandboxes"}, Security: keySecurity,
			Parameters: params, RequestBody: body, Responses: d.refusals(responses),
		})
	}
	on := func(method, path, id, summary string, params []*huma.Param, body *huma.RequestBody, ok *huma.Response) {
		status := "200"
		if ok.Content == nil {
			status = "204"
		}
		add(method, sandboxPath+path, id, summary, append([]*huma.Param{name, session}, params...), body, map[string]*huma.Response{status: ok, "404": unknown, "409": conflict, "429": limited})
	}
	one := d.json("The sandbox.", Sandbox{})
	events := func(description string, line any) *huma.Response {
		r := d.json(description, line)
		return content(r, map[string]*huma.MediaType{ndjson: d.media(line), eventStream: d.media(line)})
	}

	add(http.MethodPost, sandboxesPath, "createSandbox", "Make a named sandbox", nil, json(NewSandbox{}), map[string]*huma.Response{
		"201": d.json("It was made.", Sandbox{}), "200": d.json("There was one of that name, which is as it was.", Sandbox{}),
		"404": d.json("not_found: there is no such snapshot, or it is not the caller's.", ErrorResponse{}),
		"409": d.json("conflict: there is one of that name with another image, or the snapshot cannot be used so.", ErrorResponse{}), "429": limited,
	})
	add(http.MethodGet, sandboxesPath, "listSandboxes", "List named sandboxes", []*huma.Param{queryParam("session", "Those of a session; of all if not given.", text())}, nil,
		map[string]*huma.Response{"200": d.json("Those of the key's environment, by session and name.", SandboxList{})})
	on(http.MethodGet, "", "getSandbox", "Get a named sandbox", nil, nil, one)
	on(http.MethodDelete, "", "deleteSandbox", "Destroy a named sandbox", nil, nil, gone)
	on(http.MethodPut, "/timeout", "setSandboxTimeout", "Say when a sandbox sleeps and when it is destroyed", nil, json(SandboxTimeout{}), one)
	on(http.MethodPut, "/network", "setSandboxNetwork", "Say what of its environment's network a sandbox may reach", nil, json(NetworkChange{}), one)
	on(http.MethodPost, "/sleep", "sleepSandbox", "Have a sandbox sleep at once", nil, nil, one)
	add(http.MethodPost, sandboxPath+"/fork", "forkSandbox", "Make copies of a sandbox, processes and all", []*huma.Param{name, session, queryParam("count", "How many; 1 if not given.", integer(1, sandbox.MaxForks))}, nil,
		map[string]*huma.Response{"201": d.json("The copies, which are called after it.", SandboxList{}), "404": unknown, "409": conflict, "429": limited})
	add(http.MethodPost, sandboxPath+"/snapshots", "createSnapshot", "Keep a sandbox as it is now",
		[]*huma.Param{name, session, queryParam("keep_ms", "How long it is kept; as long as the server's rule says if not given.", integer(1, float64(maxKeep.Milliseconds())))}, nil,
		map[string]*huma.Response{"201": d.json("What is kept: without memory where that cannot be written, and then detail says why.", Snapshot{}), "404": unknown, "409": conflict, "429": limited})
	add(http.MethodGet, snapshotsPath, "listSnapshots", "List snapshots", []*huma.Param{
		queryParam("limit", "Most items of a page; 20 if not given.", integer(1, maxPage)), queryParam("page", "The next_page of an earlier answer.", text()),
	}, nil, map[string]*huma.Response{"200": d.json("Those of the key's environment, newest first.", SnapshotPage{})})
	snapshot := &huma.Param{Name: "snapshot", In: "path", Required: true, Description: "Its snapshot_id.", Schema: text()}
	noSnapshot := d.json("not_found: there is no such snapshot, or it is not the caller's.", ErrorResponse{})
	add(http.MethodGet, snapshotPath, "getSnapshot", "Get a snapshot", []*huma.Param{snapshot}, nil, map[string]*huma.Response{"200": d.json("The snapshot.", Snapshot{}), "404": noSnapshot})
	add(http.MethodDelete, snapshotPath, "deleteSnapshot", "Delete a snapshot", []*huma.Param{snapshot}, nil, map[string]*huma.Response{"204": gone, "404": noSnapshot})
	on(http.MethodGet, "/metrics", "getSandboxMetrics", "Get what a sandbox uses", nil, nil, d.json("It wakes nothing.", SandboxMetrics{}))
	on(http.MethodGet, "/ports", "listSandboxPorts", "List the ports that something listens on", nil, nil, d.json("By number.", SandboxPorts{}))

	on(http.MethodGet, "/files", "readSandboxFile", "Read a file", []*huma.Param{path}, nil, content(d.json("Its bytes, or a range of them.", ""), octets))
	on(http.MethodPut, "/files", "writeSandboxFile", "Write a file",
		[]*huma.Param{path, queryParam("append", "To what is there, instead of replacing it.", boolean()), queryParam("mode", "Octal permissions.", text())},
		&huma.RequestBody{Required: true, Content: octets}, d.json("Folders above it are made. The file takes its place when all of it is there.", SandboxWritten{}))
	on(http.MethodDelete, "/files", "deleteSandboxFile", "Remove a file or folder", []*huma.Param{path, queryParam("recursive", "With all that a folder has.", boolean())}, nil, gone)
	on(http.MethodGet, "/files/stat", "statSandboxFile", "Describe a file", []*huma.Param{path}, nil, d.json("Of a symlink, the link itself.", SandboxFile{}))
	on(http.MethodGet, "/files/list", "listSandboxFiles", "List a folder",
		[]*huma.Param{folder, queryParam("depth", "1, if not given, is the folder alone.", integer(1, maxDepth)), queryParam("limit", "Most entries.", integer(1, file.MaxEntries))}, nil, d.json("By path.", SandboxFiles{}))
	on(http.MethodGet, "/files/watch", "watchSandboxFiles", "Follow changes of files", []*huma.Param{folder, queryParam("recursive", "Also below it.", boolean())}, nil, events("One line a change.", SandboxChange{}))
	on(http.MethodPost, "/files/directories", "makeSandboxFolder", "Make a folder and those above it", []*huma.Param{path}, nil, d.json("The folder.", SandboxFile{}))
	on(http.MethodPost, "/files/move", "moveSandboxFile", "Rename a file or folder",
		[]*huma.Param{required(queryParam("from", "A path, as in path.", text())), required(queryParam("to", "Its new name.", text())), queryParam("replace", "What stands at to may be replaced.", boolean())}, nil, d.json("What is at to.", SandboxFile{}))
	on(http.MethodGet, "/archive", "packSandbox", "Get a file or folder as a tar archive", []*huma.Param{path}, nil, content(d.json("Its own entry is named \".\".", ""), tar))
	on(http.MethodPut, "/archive", "unpackSandbox", "Unpack a tar archive", []*huma.Param{path}, &huma.RequestBody{Required: true, Content: tar},
		d.json("path is the name that the entry \".\" has got; all others are below it.", SandboxUnpacked{}))

	add(http.MethodPost, sandboxPath+"/processes", "startProcess", "Start a process in the background", []*huma.Param{name, session}, json(NewProcess{}),
		map[string]*huma.Response{"201": d.json("It runs.", SandboxProcess{}), "404": unknown, "409": conflict, "429": limited})
	on(http.MethodGet, "/processes", "listProcesses", "List processes", nil, nil, d.json("Those that were started and not removed, oldest first.", SandboxProcesses{}))
	const process1 = "/processes/{process}"
	on(http.MethodGet, process1, "getProcess", "Get a process", []*huma.Param{process}, nil, d.json("The process.", SandboxProcess{}))
	on(http.MethodDelete, process1, "deleteProcess", "End a process and remove it", []*huma.Param{process}, nil, gone)
	on(http.MethodGet, process1+"/output", "followProcess", "Follow the output of a process", []*huma.Param{
		process, queryParam("after", "The cursor of an earlier event; everything that is kept if not given.", integer(0, maxCursor)),
		queryParam("follow", "false: what there is now. Otherwise until it ends.", boolean()), queryParam("encoding", "Of data.", oneOf("utf-8", "base64")),
	}, nil, events("One line a piece of output; exit comes last.", ProcessEvent{}))
	on(http.MethodGet, process1+"/wait", "waitProcess", "Wait for the end of a process", []*huma.Param{process, queryParam("timeout_ms", "How long; 30000 if not given.", integer(0, float64(longestWait.Milliseconds())))}, nil,
		d.json("The process, which may still run.", SandboxProcess{}))
	on(http.MethodPost, process1+"/stdin", "writeProcess", "Write to a process", []*huma.Param{process, queryParam("close", "Ends its input after that.", boolean())},
		&huma.RequestBody{Content: octets}, d.json("It is all in the pipe.", ProcessWritten{}))
	on(http.MethodPost, process1+"/signal", "signalProcess", "Send a signal to a process", []*huma.Param{process}, json(ProcessSignal{}), d.json("The process.", SandboxProcess{}))

	add(http.MethodGet, sandboxPath+"/terminal", "openTerminal", "Open a terminal, as a WebSocket", []*huma.Param{
		name, session, queryParam("process", "A terminal that there is, by its process_id; a new one if not given.", text()),
		queryParam("after", "The cursor of an earlier message; everything that is kept if not given.", integer(0, maxCursor)),
		queryParam("rows", "", integer(1, maxRows)), queryParam("columns", "", integer(1, maxRows)),
		queryParam("command", "Instead of an interactive shell.", text()), queryParam("working_dir", "", text()),
	}, nil, map[string]*huma.Response{
		"101": {Description: "Binary messages are what is typed and what is shown; text messages are of the type that is described.", Content: map[string]*huma.MediaType{"application/json": d.media(TerminalMessage{})}},
		"403": d.json("forbidden: the key's scopes do not allow this, or a page of another origin asks.", ErrorResponse{}),
		"404": unknown, "409": conflict, "426": d.json("upgrade_required: the request is none for a WebSocket, version 13.", ErrorResponse{}), "429": limited,
	})

	for _, o := range []struct{ method, id, summary string }{
		{http.MethodGet, "listOrphans", "List what there is of sandboxes that no record knows"}, {http.MethodDelete, "reapOrphans", "Remove it"},
	} {
		doc.AddOperation(&huma.Operation{
			OperationID: o.id, Method: o.method, Path: orphansPath, Summary: o.summary, Tags: []string{"admin"}, Security: keySecurity,
			Responses: d.refusals(map[string]*huma.Response{"200": d.json("Their ids.", Orphans{})}),
		})
	}
}

func boolean() *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

func required(p *huma.Param) *huma.Param {
	p.Required = true
	return p
}
