package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// command is what exec runs.
func command(a *args) sdk.Command {
	cmd := sdk.Command{Shell: a.text("command"), WorkingDir: a.text("working_dir"), Timeout: a.ms("timeout_ms")}
	if text := a.text("stdin"); text != "" {
		cmd.Stdin = strings.NewReader(text)
	}
	if argv, ok := a.take("argv"); ok {
		for _, word := range argv.([]any) {
			cmd.Argv = append(cmd.Argv, word.(string))
		}
	}
	return cmd
}

// terminal opens a terminal, types input, and reads until the program ends.
func terminal(ctx context.Context, c *sdk.Client, a *args) (any, error) {
	ref, input := a.sandbox(), a.text("input")
	conn, err := c.Terminal(ctx, ref, a.query("command", "rows", "columns", "working_dir"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.CloseNow() }() // the program has ended, or the test has failed
	if err := conn.Write(ctx, websocket.MessageBinary, []byte(input)); err != nil {
		return nil, err
	}
	var shown strings.Builder
	for {
		kind, text, err := conn.Read(ctx)
		if err != nil {
			return nil, err
		}
		var m sdk.TerminalMessage
		switch {
		case kind == websocket.MessageBinary:
			shown.Write(text)
		case json.Unmarshal(text, &m) != nil:
			return nil, errors.New("a message of the terminal is no JSON")
		case m.Type == "exit":
			return map[string]any{"output": shown.String(), "exit_code": m.ExitCode}, nil
		}
	}
}

// verify checks a webhook's message.
func verify(_ context.Context, _ *sdk.Client, a *args) (any, error) {
	header := http.Header{}
	if given, ok := a.take("headers"); ok {
		for name, value := range given.(map[string]any) {
			header.Set(name, value.(string))
		}
	}
	return sdk.VerifyWebhook(a.text("secret"), header, []byte(a.text("body")), time.Unix(a.number("now"), 0))
}

var sandboxCalls = map[string]call{
	"sandboxes.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateSandbox(ctx, body[sdk.NewSandbox](a))
	},
	"sandboxes.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Sandboxes(ctx, a.text("session")))
	},
	"sandboxes.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Sandbox(ctx, a.sandbox())
	},
	"sandboxes.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteSandbox(ctx, a.sandbox())
	},
	"sandboxes.sleep": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SleepSandbox(ctx, a.sandbox())
	},
	"sandboxes.restart": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.RestartSandbox(ctx, a.sandbox())
	},
	"sandboxes.fork": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ForkSandbox(ctx, a.sandbox(), int(a.number("count"))))
	},
	"sandboxes.snapshot": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateSnapshot(ctx, a.sandbox(), a.ms("keep_ms"))
	},
	"sandboxes.set_network": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeSandboxNetwork(ctx, a.sandbox(), body[sdk.NetworkChange](a))
	},
	"sandboxes.set_timeout": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SetSandboxTimeout(ctx, a.sandbox(), body[sdk.SandboxTimeout](a))
	},
	"sandboxes.metrics": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SandboxMetrics(ctx, a.sandbox())
	},
	"sandboxes.ports": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.SandboxPorts(ctx, a.sandbox()))
	},
	"sandboxes.exec": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		r, err := c.Exec(ctx, a.sandbox(), command(a))
		return map[string]any{"exit_code": r.ExitCode, "stdout": string(r.Stdout), "stderr": string(r.Stderr), "timed_out": r.TimedOut}, err
	},
	"sandboxes.terminal": terminal,
	"sandboxes.terminal_ticket": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.TerminalTicket(ctx, a.sandbox())
	},
	"sandboxes.files.read": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		ref, path := a.sandbox(), a.text("path")
		return download(func(w io.Writer) error { return c.SandboxFiles(ref).Read(ctx, path, w) })
	},
	"sandboxes.files.write": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		ref, path := a.sandbox(), a.text("path")
		if a.flag("append") {
			size, err := c.SandboxFiles(ref).Append(ctx, path, a.content())
			return map[string]any{"size": size}, err
		}
		mode, err := strconv.ParseUint(cmp.Or(a.text("mode"), "644"), 8, 32)
		if err != nil {
			return nil, err
		}
		size, err := c.SandboxFiles(ref).Write(ctx, path, uint32(mode), a.content())
		return map[string]any{"size": size}, err
	},
	"sandboxes.files.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.SandboxFiles(a.sandbox()).Delete(ctx, a.text("path"), a.flag("recursive"))
	},
	"sandboxes.files.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SandboxFiles(a.sandbox()).List(ctx, a.text("path"), int(a.number("depth")))
	},
	"sandboxes.files.stat": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SandboxFiles(a.sandbox()).Stat(ctx, a.text("path"))
	},
	"sandboxes.files.make_directory": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SandboxFiles(a.sandbox()).MakeFolder(ctx, a.text("path"))
	},
	"sandboxes.files.move": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SandboxFiles(a.sandbox()).Move(ctx, a.text("from"), a.text("to"), a.flag("replace"))
	},
	"sandboxes.files.pack": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		ref, path := a.sandbox(), a.text("path")
		return download(func(w io.Writer) error { return c.SandboxFiles(ref).Pack(ctx, path, w) })
	},
	"sandboxes.files.unpack": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SandboxFiles(a.sandbox()).Unpack(ctx, a.text("path"), a.content())
	},
	"sandboxes.processes.start": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.StartProcess(ctx, a.sandbox(), body[sdk.NewProcess](a))
	},
	"sandboxes.processes.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Processes(ctx, a.sandbox()))
	},
	"sandboxes.processes.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Process(ctx, a.sandbox(), a.text("process"))
	},
	"sandboxes.processes.wait": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.WaitProcess(ctx, a.sandbox(), a.text("process"), a.ms("timeout_ms"))
	},
	"sandboxes.processes.signal": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SignalProcess(ctx, a.sandbox(), a.text("process"), a.text("signal"))
	},
	"sandboxes.processes.write": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.WriteProcess(ctx, a.sandbox(), a.text("process"), a.content(), a.flag("close"))
	},
	"sandboxes.processes.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.EndProcess(ctx, a.sandbox(), a.text("process"))
	},
	"sandboxes.processes.kill_all": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.KillAllProcesses(ctx, a.sandbox())
	},
	"sandboxes.previews.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Previews(ctx, a.sandbox()))
	},
	"sandboxes.previews.open": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.OpenPreview(ctx, a.sandbox(), a.text("port"))
	},
	"sandboxes.previews.close": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.ClosePreview(ctx, a.sandbox(), a.text("port"))
	},
	"snapshots.list": func(ctx context.Context, c *sdk.Client, _ *args) (any, error) {
		return data(c.Snapshots().All(ctx, 0))
	},
	"snapshots.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Snapshot(ctx, a.text("snapshot"))
	},
	"snapshots.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteSnapshot(ctx, a.text("snapshot"))
	},
	"contexts.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateContext(ctx, a.sandbox(), body[sdk.NewContext](a))
	},
	"contexts.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Contexts(ctx, a.sandbox()))
	},
	"contexts.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Context(ctx, a.sandbox(), a.text("context"))
	},
	"contexts.run": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.RunCode(ctx, a.sandbox(), a.text("context"), body[sdk.RunCode](a))
	},
	"contexts.interrupt": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.InterruptContext(ctx, a.sandbox(), a.text("context"))
	},
	"contexts.restart": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.RestartContext(ctx, a.sandbox(), a.text("context"))
	},
	"contexts.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteContext(ctx, a.sandbox(), a.text("context"))
	},
	"tools.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Tools(ctx, a.text("format"))
	},
	"tools.browse": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolBrowse(ctx, a.text("session"), body[sdk.BrowseInput](a))
	},
	"tools.execute_code": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolExecuteCode(ctx, a.text("session"), body[sdk.CodeInput](a))
	},
	"tools.glob": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolGlob(ctx, a.text("session"), body[sdk.GlobInput](a))
	},
	"tools.read_file": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolReadFile(ctx, a.text("session"), body[sdk.ReadFileInput](a))
	},
	"tools.sandbox_create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolSandboxCreate(ctx, a.text("session"), body[sdk.SandboxCreateInput](a))
	},
	"tools.sandbox_list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolSandboxList(ctx, a.text("session"))
	},
	"tools.shell": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolShell(ctx, a.text("session"), body[sdk.ShellInput](a))
	},
	"tools.transfer": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolTransfer(ctx, a.text("session"), body[sdk.TransferInput](a))
	},
	"tools.write_file": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ToolWriteFile(ctx, a.text("session"), body[sdk.WriteFileInput](a))
	},
	"tools.run_code": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ExecuteCode(ctx, body[sdk.ExecuteCodeRequest](a))
	},
	"tools.end_turn": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.EndTurn(ctx, a.text("agent"), a.text("turn"))
	},
	"web.search": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Search(ctx, body[sdk.SearchRequest](a))
	},
	"web.fetch": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Fetch(ctx, body[sdk.FetchRequest](a))
	},
	"webhooks.verify": verify,
}
