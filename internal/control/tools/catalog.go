package tools

import (
	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// all is every tool, in the contract's order.
var all = []tool{
	define(Definition{
		Name: "shell", Title: "Run a command", Description: "Execute a shell command in the sandbox.",
		Annotations: Annotations{Destructive: true, OpenWorld: true},
		Class:       agent.Code, Activity: activity.Command,
		Example: ShellInput{Command: new("ls -la"), Sandbox: new("dev")},
	}, shell),
	define(Definition{
		Name: "read_file", Title: "Read a file", Description: "Read a file from the sandbox filesystem.",
		Annotations: Annotations{ReadOnly: true},
		Class:       agent.Files, Activity: activity.File,
		Example: ReadFileInput{Path: new("/home/user/notes.txt"), Sandbox: new("dev")},
	}, readFile),
	define(Definition{
		Name: "write_file", Title: "Write a file", Description: "Write content to a file in the sandbox.",
		Annotations: Annotations{Destructive: true},
		Class:       agent.Files, Activity: activity.File,
		Example: WriteFileInput{Path: new("/home/user/notes.txt"), Content: new("Hello.\n"), Sandbox: new("dev")},
	}, writeFile),
	define(Definition{
		Name: "glob", Title: "Find files", Description: "List files matching a glob pattern.",
		Annotations: Annotations{ReadOnly: true},
		Class:       agent.Files, Activity: activity.File,
		Example: GlobInput{Pattern: new("**/*.py"), Sandbox: new("dev")},
	}, glob),
	define(Definition{
		Name: browseName, Title: "Open a port", Description: "Expose a port from the sandbox and return a public URL.",
		Annotations: Annotations{Idempotent: true, OpenWorld: true},
		Class:       agent.Network, Activity: activity.Other,
		Example: BrowseInput{Port: new(wire.Whole(8000)), Sandbox: new("dev")},
	}, browse),
	define(Definition{
		Name: "sandbox_create", Title: "Create a sandbox", Description: "Create a named sandbox. No-op if it already exists.",
		Annotations: Annotations{Idempotent: true},
		Activity:    activity.Sandbox,
		Example:     SandboxCreateInput{Sandbox: new("dev"), Image: new("node:22")},
	}, sandboxCreate),
	define(Definition{
		Name: "sandbox_list", Title: "List sandboxes", Description: "List all active sandboxes in this session.",
		Annotations: Annotations{ReadOnly: true},
		Activity:    activity.Sandbox,
		Example:     SandboxListInput{},
	}, sandboxList),
	define(Definition{
		Name: "transfer", Title: "Copy between sandboxes", Description: "Copy files between sandboxes.",
		Annotations: Annotations{Destructive: true, Idempotent: true},
		Class:       agent.Files, Activity: activity.File,
		Example: TransferInput{FromSandbox: new("dev"), FromPath: new("dist"), ToSandbox: new("test"), ToPath: new("dist"), Recursive: new(true)},
	}, transfer),
	define(Definition{
		Name: ExecuteCodeName, Title: "Run code apart", Description: "Run " + language.Titles("or") + " code in a sandbox of its own, apart from the named ones. Files it leaves stay for the next call of this session for a while.",
		Annotations: Annotations{OpenWorld: true},
		Class:       agent.Code, Activity: activity.Code,
		Example: CodeInput{Code: new("print(6 * 7)"), Language: new(language.Python)},
	}, executeCode),
}
