package tools

import "github.com/atoll-run/atoll/internal/core/language"

// all is every tool, in the contract's order.
var all = []tool{
	define(Definition{
		Name: "shell", Title: "Run a command", Description: "Execute a shell command in the sandbox.",
		Annotations: Annotations{Destructive: true, OpenWorld: true},
	}, shell),
	define(Definition{
		Name: "read_file", Title: "Read a file", Description: "Read a file from the sandbox filesystem.",
		Annotations: Annotations{ReadOnly: true},
	}, readFile),
	define(Definition{
		Name: "write_file", Title: "Write a file", Description: "Write content to a file in the sandbox.",
		Annotations: Annotations{Destructive: true},
	}, writeFile),
	define(Definition{
		Name: "glob", Title: "Find files", Description: "List files matching a glob pattern.",
		Annotations: Annotations{ReadOnly: true},
	}, glob),
	define(Definition{
		Name: browseName, Title: "Open a port", Description: "Expose a port from the sandbox and return a public URL.",
		Annotations: Annotations{Idempotent: true, OpenWorld: true},
	}, browse),
	define(Definition{
		Name: "sandbox_create", Title: "Create a sandbox", Description: "Create a named sandbox. No-op if it already exists.",
		Annotations: Annotations{Idempotent: true},
	}, sandboxCreate),
	define(Definition{
		Name: "sandbox_list", Title: "List sandboxes", Description: "List all active sandboxes in this session.",
		Annotations: Annotations{ReadOnly: true},
	}, sandboxList),
	define(Definition{
		Name: "transfer", Title: "Copy between sandboxes", Description: "Copy files between sandboxes.",
		Annotations: Annotations{Destructive: true, Idempotent: true},
	}, transfer),
	define(Definition{
		Name: ExecuteCodeName, Title: "Run code apart", Description: "Run " + language.Titles("or") + " code in a sandbox of its own, apart from the named ones. Files it leaves stay for the next call of this session for a while.",
		Annotations: Annotations{OpenWorld: true},
	}, executeCode),
}
