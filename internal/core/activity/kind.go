package activity

import "slices"

// Kind groups the sources of the audit trail.
type Kind string

// Kinds.
const (
	Code         Kind = "code"         // a program or a piece of code
	Command      Kind = "command"      // a shell command, a process or a terminal
	File         Kind = "file"         // reads and writes of sandbox files
	Sandbox      Kind = "sandbox"      // the lifecycle and the network of a named sandbox
	Model        Kind = "model"        // an agent or a response called a model
	Web          Kind = "web"          // a web search or a fetched web page
	MCP          Kind = "mcp"          // a call to a tool of an MCP server
	Confirmation Kind = "confirmation" // a decision about a tool call
	Other        Kind = "other"
)

// Kinds lists every kind.
var Kinds = []Kind{Code, Command, File, Sandbox, Model, Web, MCP, Confirmation, Other}

// sources maps each kind to its sources. Other covers the remaining sources.
var sources = map[Kind][]string{
	Code:         {"execute", "response", "code_interpreter", "sandbox_execute", "exec_code", "context"},
	Command:      {"process", "terminal", "process_stdin", "process_signal", "process_delete", "process_killall", "process_output", "terminal_ticket"},
	File:         {"mount", "file_read", "file_write", "file_delete", "file_mkdir", "file_move", "file_watch", "archive_read", "archive_write"},
	Sandbox:      {"sandbox", "sandbox_create", "sandbox_destroy", "sandbox_fork", "sandbox_sleep", "sandbox_timeout", "sandbox_network", "sandbox_connect", "sandbox_restart", "sandbox_reap", "snapshot_create", "snapshot_delete", "context_create", "context_delete", "context_interrupt", "context_restart", "get_preview_url", "preview_open", "preview_close"},
	Model:        {"model"},
	Web:          {"web_search", "people_search", "fetch_url"},
	MCP:          {"mcp"},
	Confirmation: {"confirmation"},
}

// Register adds a source to a kind. It is for init functions of the packages that implement tools.
func Register(k Kind, source string) {
	if k != Other && !slices.Contains(sources[k], source) {
		sources[k] = append(sources[k], source)
	}
}

// Sources returns the sources of a kind. If except is true, the kind covers every source that is
// not in list.
func (k Kind) Sources() (list []string, except bool) {
	if k != Other {
		return sources[k], false
	}
	for _, of := range Kinds {
		list = append(list, sources[of]...)
	}
	return list, true
}

// KindOf returns the kind of a source.
func KindOf(source string) Kind {
	for kind, list := range sources {
		if slices.Contains(list, source) {
			return kind
		}
	}
	return Other
}

// Valid reports whether k is a kind.
func (k Kind) Valid() bool { return slices.Contains(Kinds, k) }
