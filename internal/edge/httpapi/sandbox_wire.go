package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// Sandbox is a named sandbox.
type Sandbox struct {
	ID           string             `json:"sandbox_id" doc:"sb- and 16 hexadecimal digits."`
	Name         string             `json:"name"`
	Session      string             `json:"session"`
	Image        string             `json:"image" doc:"As it was asked for."`
	Status       string             `json:"status" enum:"running,sleeping,lost,destroyed"`
	Detail       string             `json:"detail,omitzero" doc:"More of the status: why it is lost, why it cannot sleep."`
	Kept         string             `json:"kept,omitzero" enum:"frozen,disk,stored" doc:"Of one that sleeps: where its memory is."`
	Limits       Limits             `json:"limits"`
	DiskSize     int64              `json:"disk_size" doc:"Bytes that /home/user, /tmp and /var/tmp may have together; 0 for no bound."`
	Network      NetworkPermissions `json:"network"`
	Mounts       []string           `json:"mounts" nullable:"false" doc:"What it has mounted below /data of which connection: slug/path, then :ro or :rw."`
	SleepAfterMS *int64             `json:"sleep_after_ms" doc:"Without use; null for never."`
	CreatedAt    time.Time          `json:"created_at"`
	UsedAt       time.Time          `json:"used_at"`
	ExpiresAt    *time.Time         `json:"expires_at" doc:"When it is destroyed; null for never."`
}

// NewSandbox is the body that makes a named sandbox.
type NewSandbox struct {
	Name         *string         `json:"name" required:"true" nullable:"false" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"`
	Session      *string         `json:"session,omitzero" minLength:"1" maxLength:"128" default:"default" doc:"The pool that it belongs to."`
	Image        *string         `json:"image,omitzero" doc:"Such as node:22; that of the key's environment if left out."`
	Snapshot     *string         `json:"snapshot,omitzero" pattern:"^snap-[0-9a-f]{16}$" doc:"The snapshot that it begins with, processes and all."`
	FilesOnly    *bool           `json:"files_only,omitzero" default:"false" doc:"It begins with the snapshot's files, in a new sandbox of the key's environment: also where the memory cannot be used."`
	Environment  *string         `json:"environment,omitzero" doc:"The environment of the key, which is the only one that it may use."`
	SleepAfterMS *Millis         `json:"sleep_after_ms,omitzero" minimum:"-1" doc:"Without use; -1 for never, the server's if left out."`
	TimeoutMS    *Millis         `json:"timeout_ms,omitzero" minimum:"1" doc:"Until it is destroyed; as long as the plan allows if left out."`
	EnvVars      map[string]Text `json:"env_vars,omitzero" nullable:"true" doc:"Variables of its programs, over those of environment and key. Rules as in an execution's env_vars."`
	Network      *NetworkChange  `json:"network,omitzero" doc:"Narrows what its environment's network allows."`
	SubPaths     []Text          `json:"sub_paths,omitzero" nullable:"true" maxItems:"10" doc:"Narrows mounted connections for as long as it lives. Rules as in an execution's sub_paths."`
}

// SandboxTimeout is the body that says when a sandbox is destroyed.
type SandboxTimeout struct {
	TimeoutMS    *Millis `json:"timeout_ms,omitzero" minimum:"0" doc:"From now; 0 for as long as the plan allows."`
	SleepAfterMS *Millis `json:"sleep_after_ms,omitzero" minimum:"-1" doc:"Without use; -1 for never, 0 for the server's."`
}

// SandboxList is a list of sandboxes, by session and name.
type SandboxList struct {
	Data []Sandbox `json:"data" nullable:"false"`
}

// SandboxMetrics are what a sandbox uses. All is 0 for one that sleeps on disk.
type SandboxMetrics struct {
	CPUSeconds      float64 `json:"cpu_seconds"`
	MemoryBytes     int64   `json:"memory_bytes"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
	DiskBytes       int64   `json:"disk_bytes" doc:"Of /home/user, /tmp and /var/tmp."`
	OOMKills        int     `json:"oom_kills" doc:"Programs that were ended because memory ran out."`
}

// Orphans are what there is of sandboxes that no record knows.
type Orphans struct {
	Data []string `json:"data" nullable:"false" doc:"Their ids."`
}

// SandboxPort is a port that something in a sandbox listens on.
type SandboxPort struct {
	Port    int    `json:"port"`
	Address string `json:"address" doc:"0.0.0.0 and :: are every address."`
}

// SandboxPorts are the ports that something listens on, by number.
type SandboxPorts struct {
	Data []SandboxPort `json:"data" nullable:"false"`
}

func sandboxWire(sb *sandbox.Sandbox) Sandbox {
	out := Sandbox{
		ID: string(sb.ID), Name: sb.Name, Session: sb.Session, Image: sb.ImageAlias, Status: string(sb.Status()), Detail: sb.Detail, Kept: string(sb.Sleep),
		Limits: limitsWire(sb.Limits), DiskSize: sb.Disk, Network: permissionsWire(sb.Permissions).Network, Mounts: append([]string{}, storage.Labels(sb.Mounts)...), CreatedAt: sb.CreatedAt.UTC(), UsedAt: sb.UsedAt.UTC(),
	}
	if out.Image == "" {
		out.Image = sb.Image
	}
	if sb.SleepAfter >= 0 {
		ms := sb.SleepAfter.Milliseconds()
		out.SleepAfterMS = &ms
	}
	if sb.ExpiresAt != nil {
		at := sb.ExpiresAt.UTC()
		out.ExpiresAt = &at
	}
	return out
}

// SandboxFile is what stands at a path in a sandbox.
type SandboxFile struct {
	Name       string    `json:"name"`
	Path       string    `json:"path" doc:"Bytes that are not UTF-8 are replaced by U+FFFD."`
	PathBase64 string    `json:"path_base64,omitzero" doc:"Of a path that is not UTF-8."`
	Kind       string    `json:"kind" enum:"file,directory,symlink,other"`
	Size       int64     `json:"size"`
	Mode       string    `json:"mode" doc:"Permissions, octal, such as 0644."`
	UID        uint32    `json:"uid"`
	GID        uint32    `json:"gid"`
	Modified   time.Time `json:"modified"`
	Target     string    `json:"target,omitzero" doc:"Of a symlink."`
}

// SandboxFiles is what a folder has, by path.
type SandboxFiles struct {
	Data      []SandboxFile `json:"data" nullable:"false"`
	Truncated bool          `json:"truncated" doc:"There are more."`
}

// SandboxWritten says how large a file is that was written.
type SandboxWritten struct {
	Size int64 `json:"size"`
}

// SandboxUnpacked says what an archive had.
type SandboxUnpacked struct {
	Files int64 `json:"files" doc:"Entries of all kinds."`
	Bytes int64 `json:"bytes" doc:"Of the files' content."`
}

// SandboxChange is one line of a watch.
type SandboxChange struct {
	Type        string `json:"type" enum:"created,modified,removed,lost,keepalive" doc:"lost: events are missing, look anew."`
	Path        string `json:"path,omitzero"`
	PathBase64  string `json:"path_base64,omitzero" doc:"Of a path that is not UTF-8."`
	IsDirectory bool   `json:"is_directory,omitzero"`
}

var kindNames = map[file.Kind]string{file.Regular: "file", file.Folder: "directory", file.Link: "symlink", file.Other: "other"}

func sandboxFileWire(f file.Info) SandboxFile {
	name, raw := pathWire(f.Path)
	return SandboxFile{
		Name: path.Base(name), Path: name, PathBase64: raw, Kind: kindNames[f.Kind], Size: f.Size, Mode: fmt.Sprintf("%04o", f.Mode.Perm()),
		UID: f.UID, GID: f.GID, Modified: f.Modified.UTC(), Target: strings.ToValidUTF8(f.Target, "\ufffd"),
	}
}

// pathWire is a path as JSON can have it, and all of it if that is not enough.
func pathWire(p string) (shown, raw string) {
	if utf8.ValidString(p) {
		return p, ""
	}
	return strings.ToValidUTF8(p, "\ufffd"), base64.StdEncoding.EncodeToString([]byte(p))
}

// SandboxProcess is a process that was started in a sandbox.
type SandboxProcess struct {
	ID          string     `json:"process_id"`
	PID         int        `json:"pid" doc:"Inside the sandbox."`
	Argv        []string   `json:"argv" nullable:"false"`
	WorkingDir  string     `json:"working_dir"`
	State       string     `json:"state" enum:"running,exited"`
	ExitCode    *int       `json:"exit_code" doc:"128+n when signal n ended it; null while it runs."`
	Signal      string     `json:"signal,omitzero" doc:"That ended it, such as SIGKILL."`
	TimedOut    bool       `json:"timed_out,omitzero"`
	Blocked     string     `json:"blocked,omitzero" doc:"The permission that ended it."`
	Reason      string     `json:"reason,omitzero" doc:"Why it was ended, where that was for a bound of the sandbox; a server that has started since does not know."`
	Stdin       bool       `json:"stdin" doc:"Whether it can be written to."`
	Terminal    bool       `json:"terminal"`
	StartedAt   time.Time  `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at"`
	StdoutBytes int64      `json:"stdout_bytes"`
	StderrBytes int64      `json:"stderr_bytes"`
	FirstCursor int64      `json:"first_cursor" doc:"Output from here on is kept."`
	LastCursor  int64      `json:"last_cursor" doc:"Where its output ends so far."`
}

// SandboxProcesses are the processes that are known, oldest first.
type SandboxProcesses struct {
	Data []SandboxProcess `json:"data" nullable:"false"`
}

// NewProcess is the body that starts a process.
type NewProcess struct {
	Command    *string         `json:"command,omitzero" doc:"For bash, or sh where there is none. Instead of argv."`
	Argv       []Text          `json:"argv,omitzero" nullable:"true" doc:"A program and its arguments. Instead of command."`
	WorkingDir *string         `json:"working_dir,omitzero" default:"/home/user"`
	EnvVars    map[string]Text `json:"env_vars,omitzero" nullable:"true" doc:"Over those of the sandbox. Rules as in an execution's env_vars."`
	Stdin      *bool           `json:"stdin,omitzero" default:"false" doc:"Whether it can be written to."`
	Terminal   *TerminalSize   `json:"terminal,omitzero" doc:"Gives it a terminal."`
	Wait       *bool           `json:"wait_for_reader,omitzero" default:"false" doc:"Whether it waits when 1 MiB of its output has not been read, instead of losing the oldest."`
	TimeoutMS  *Millis         `json:"timeout_ms,omitzero" minimum:"1" doc:"Ends it and all it started; if left out nothing does."`
}

// TerminalSize is the size of a terminal.
type TerminalSize struct {
	Rows    uint16 `json:"rows" minimum:"1"`
	Columns uint16 `json:"columns" minimum:"1"`
}

// ProcessSignal is the body that sends a signal.
type ProcessSignal struct {
	Signal *string `json:"signal" required:"true" nullable:"false" doc:"Such as TERM, SIGTERM or 15."`
	Group  *bool   `json:"group,omitzero" default:"true" doc:"To its whole process group."`
}

// ProcessWritten says how much of what was sent a process has got.
type ProcessWritten struct {
	Bytes int64 `json:"bytes"`
}

// ProcessEvent is one line of a process's output.
type ProcessEvent struct {
	Type     string `json:"type" enum:"output,keepalive,exit,stopped" doc:"stopped is the last one where the conversation with the sandbox ended for a bound of it."`
	Stream   string `json:"stream,omitzero" enum:"stdout,stderr,terminal" doc:"On output."`
	Data     string `json:"data,omitzero" doc:"On output: text, in which bytes that are not UTF-8 are U+FFFD; or base64, with encoding=base64."`
	Dropped  int64  `json:"dropped,omitzero" doc:"On output: bytes before it that were not kept."`
	ExitCode *int   `json:"exit_code,omitzero" doc:"On exit."`
	Signal   string `json:"signal,omitzero" doc:"On exit."`
	TimedOut bool   `json:"timed_out,omitzero" doc:"On exit."`
	Blocked  string `json:"blocked,omitzero" doc:"On exit: the permission that ended it."`
	Reason   string `json:"reason,omitzero" doc:"On stopped: why. On exit: why it was ended, where that was for a bound of the sandbox."`
	Cursor   int64  `json:"cursor" doc:"Give it as after to go on behind this event."`
}

func processWire(ctx context.Context, h sandbox.Handle, p process.Info) SandboxProcess {
	out := SandboxProcess{
		ID: string(p.ID), PID: p.PID, Argv: make([]string, len(p.Argv)), WorkingDir: strings.ToValidUTF8(p.Dir, "\ufffd"), State: "running", Stdin: p.Input || p.Terminal, Terminal: p.Terminal,
		StartedAt: p.Started.UTC(), StdoutBytes: p.Written[process.Stdout] + p.Written[process.Terminal], StderrBytes: p.Written[process.Stderr],
		FirstCursor: int64(p.First), LastCursor: int64(p.Last),
	}
	for i, arg := range p.Argv {
		out.Argv[i] = strings.ToValidUTF8(arg, "\ufffd")
	}
	if p.Exit != nil {
		at := p.Exit.At.UTC()
		out.State, out.ExitCode, out.EndedAt = "exited", &p.Exit.Code, &at
		out.Signal, out.TimedOut, out.Blocked = signalName(p.Exit.Signal), p.Exit.TimedOut, p.Exit.Blocked
		out.Reason = reason(h.Killed(ctx, *p.Exit))
	}
	return out
}

// reason is what a caller is told of why something was ended; "" for nothing.
func reason(why error) string {
	if why == nil {
		return ""
	}
	_, body := render(why)
	return body.Message
}

func signalName(sig syscall.Signal) string {
	if sig == 0 {
		return ""
	}
	return unix.SignalName(sig)
}
