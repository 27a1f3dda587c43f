package tools

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// The inputs are the contract's: its names, types, defaults and words. What is
// ours beside them is encoding, and the tool execute_code.

// ShellInput is the input of shell.
type ShellInput struct {
	Sandbox    *string     `json:"sandbox,omitzero" default:"default"`
	Command    *string     `json:"command" required:"true"`
	TimeoutMS  *wire.Whole `json:"timeout_ms,omitzero" default:"30000"`
	WorkingDir *string     `json:"working_dir,omitzero" default:"/home/user"`
}

// ShellOutput is what shell returns.
type ShellOutput struct {
	Stdout          string `json:"stdout" required:"true" doc:"The first 262,144 bytes. Invalid UTF-8 becomes U+FFFD."`
	Stderr          string `json:"stderr" required:"true" doc:"The first 262,144 bytes. Invalid UTF-8 becomes U+FFFD."`
	ExitCode        int    `json:"exit_code" required:"true" doc:"128+n when signal n ended the command; 124 when timeout_ms was over."`
	TimedOut        bool   `json:"timed_out,omitzero" doc:"The command and all that it had started were ended because timeout_ms was over."`
	StdoutTruncated bool   `json:"stdout_truncated,omitzero" doc:"There was more than stdout has."`
	StderrTruncated bool   `json:"stderr_truncated,omitzero" doc:"There was more than stderr has."`
	Blocked         string `json:"blocked,omitzero" doc:"The permission of the environment that stopped the command, such as blocked_commands: shutdown."`
	Hint            string `json:"hint,omitzero" doc:"How to fix a failure that the network policy may have caused."`
}

// ReadFileInput is the input of read_file.
type ReadFileInput struct {
	Sandbox  *string     `json:"sandbox,omitzero" default:"default"`
	Path     *string     `json:"path" required:"true" empty:"false"`
	Offset   *wire.Whole `json:"offset,omitzero" doc:"Byte offset"`
	Limit    *wire.Whole `json:"limit,omitzero" doc:"Max bytes to read"`
	Encoding *string     `json:"encoding,omitzero" enum:"utf-8,base64" doc:"How content is given. By default utf-8 for text, and base64 for other content."`
}

// ReadFileOutput is what read_file returns.
type ReadFileOutput struct {
	Content   string `json:"content" required:"true"`
	Size      int64  `json:"size" required:"true" doc:"Bytes of the whole file."`
	Encoding  string `json:"encoding,omitzero" enum:"base64" doc:"base64 when content is not the text itself."`
	Truncated bool   `json:"truncated,omitzero" doc:"No limit was given, and the file continues after content."`
}

// WriteFileInput is the input of write_file.
type WriteFileInput struct {
	Sandbox  *string `json:"sandbox,omitzero" default:"default"`
	Path     *string `json:"path" required:"true" empty:"false"`
	Content  *string `json:"content" required:"true" nul:"true"`
	Append   *bool   `json:"append,omitzero" default:"false"`
	Encoding *string `json:"encoding,omitzero" enum:"utf-8,base64" default:"utf-8" doc:"How content is given."`
}

// WriteFileOutput is what write_file returns.
type WriteFileOutput struct {
	OK   bool  `json:"ok" required:"true"`
	Size int64 `json:"size" required:"true" doc:"Bytes of the file as it is now."`
}

// GlobInput is the input of glob.
type GlobInput struct {
	Sandbox *string `json:"sandbox,omitzero" default:"default"`
	Pattern *string `json:"pattern" required:"true" empty:"false"`
	Cwd     *string `json:"cwd,omitzero" default:"/home/user" empty:"false"`
}

// GlobOutput is what glob returns.
type GlobOutput struct {
	Files     []string `json:"files" required:"true" doc:"By name, as the pattern is: relative to cwd unless it begins with a slash."`
	Quoted    []string `json:"quoted,omitzero" doc:"Those of files that are not UTF-8, in the same order, as bash reads them: $'caf\\351'."`
	Truncated bool     `json:"truncated,omitzero" doc:"More files match than are listed."`
}

// BrowseInput is the input of browse.
type BrowseInput struct {
	Sandbox *string     `json:"sandbox,omitzero" default:"default"`
	Port    *wire.Whole `json:"port" required:"true"`
}

// BrowseOutput is what browse returns.
type BrowseOutput struct {
	URL string `json:"url" required:"true"`
}

// SandboxCreateInput is the input of sandbox_create.
type SandboxCreateInput struct {
	Sandbox      *string     `json:"sandbox" required:"true"`
	Image        *string     `json:"image,omitzero" default:"node:22" fill:"false"`
	SleepAfterMS *wire.Whole `json:"sleep_after_ms,omitzero" default:"600000"`
}

// SandboxCreateOutput is what sandbox_create returns.
type SandboxCreateOutput struct {
	Sandbox string `json:"sandbox" required:"true"`
	Created bool   `json:"created" required:"true" doc:"False if a sandbox of that name existed; the call does not change it."`
	Warning string `json:"warning,omitzero" doc:"The image that runs instead of the requested one, and how to get the requested one."`
}

// SandboxListInput is the input of sandbox_list.
type SandboxListInput struct{}

// SandboxListOutput is what sandbox_list returns.
type SandboxListOutput struct {
	Sandboxes []ListedSandbox `json:"sandboxes" required:"true"`
}

// ListedSandbox is a sandbox of the session.
type ListedSandbox struct {
	Name    string `json:"name" required:"true"`
	Image   string `json:"image" required:"true"`
	Status  string `json:"status" required:"true" enum:"running,sleeping"`
	Warning string `json:"warning,omitzero"`
}

// TransferInput is the input of transfer.
type TransferInput struct {
	FromSandbox *string `json:"from_sandbox" required:"true"`
	FromPath    *string `json:"from_path" required:"true" empty:"false"`
	ToSandbox   *string `json:"to_sandbox" required:"true"`
	ToPath      *string `json:"to_path" required:"true" empty:"false"`
	Recursive   *bool   `json:"recursive,omitzero" default:"false"`
}

// TransferOutput is what transfer returns.
type TransferOutput struct {
	OK    bool  `json:"ok" required:"true"`
	Bytes int64 `json:"bytes" required:"true" doc:"Of the files' content."`
}

// CodeInput is the input of execute_code.
type CodeInput struct {
	Code     *string        `json:"code" required:"true" nul:"true"`
	Language *language.Name `json:"language,omitzero" default:""`
	Timeout  *wire.Whole    `json:"timeout,omitzero" doc:"Most seconds that the code may run; 60 if omitted."`
}

// CodeOutput is what execute_code returns.
type CodeOutput struct {
	OK              bool       `json:"ok" required:"true" doc:"True if the program ended with exit code 0."`
	Stdout          string     `json:"stdout" required:"true" doc:"The first 256 KB."`
	Stderr          string     `json:"stderr" required:"true" doc:"The first 32 KB."`
	ExitStatus      string     `json:"exit_status" required:"true" enum:"ok,error,timeout,oom,cap_exceeded,provisioning,cancelled"`
	ExitCode        int        `json:"exit_code" required:"true" doc:"-1 when none was seen."`
	DurationMS      int64      `json:"duration_ms" required:"true"`
	Error           *string    `json:"error" required:"true" nullable:"true" enum:"SandboxProvisioning,SandboxCapExceeded,SandboxTimeout,SandboxOutOfMemory,SandboxCancelled,SandboxFailed" doc:"null when Atoll did not stop the program. After SandboxProvisioning and SandboxCapExceeded no code was run."`
	ErrorMessage    *string    `json:"error_message" required:"true" nullable:"true" doc:"Why ok is false; null otherwise."`
	Dimension       *string    `json:"dimension" required:"true" nullable:"true" doc:"With SandboxCapExceeded: which cap, such as tenant_daily or agent_hourly."`
	ResetsAt        *time.Time `json:"resets_at" required:"true" nullable:"true" doc:"With SandboxCapExceeded: when it resets, if it does."`
	StdoutTruncated bool       `json:"stdout_truncated" required:"true"`
	StderrTruncated bool       `json:"stderr_truncated" required:"true"`
	TraceID         string     `json:"trace_id" required:"true" doc:"Names the execution, if there was one, and its audit row."`
}
