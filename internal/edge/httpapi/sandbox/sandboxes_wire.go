package sandbox

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Sandbox is a named sandbox.
type Sandbox struct {
	ID           string                             `json:"sandbox_id" doc:"sb- and 16 hexadecimal digits."`
	Name         string                             `json:"name"`
	Session      string                             `json:"session" doc:"The session that it is in."`
	Image        string                             `json:"image" doc:"The image that it runs."`
	ImageAlias   string                             `json:"image_alias,omitzero" doc:"Requested name of that image, such as node:22; absent for the environment's image."`
	ImageWarning string                             `json:"image_warning,omitzero" doc:"The version that runs instead of the one that image_alias requests, and how to get the requested one; omitted if the sandbox runs that version."`
	Status       string                             `json:"status" enum:"running,sleeping,lost,destroyed"`
	Detail       string                             `json:"detail,omitzero" doc:"More of the status: why it is lost, why it cannot sleep."`
	Kept         string                             `json:"kept,omitzero" enum:"frozen,disk,stored" doc:"Of one that sleeps: where its memory is."`
	Limits       environmentwire.Limits             `json:"limits"`
	DiskSize     int64                              `json:"disk_size" doc:"Bytes that /home/user, /tmp and /var/tmp may have together; 0 for no bound."`
	Network      environmentwire.NetworkPermissions `json:"network" doc:"Network access of programs."`
	Mounts       []string                           `json:"mounts" doc:"Connections mounted below /data: slug/path, then :ro or :rw."`
	SleepAfterMS *int64                             `json:"sleep_after_ms" doc:"Without use; null for never."`
	CreatedAt    time.Time                          `json:"created_at"`
	UsedAt       time.Time                          `json:"used_at" doc:"When it was used last."`
	ExpiresAt    *time.Time                         `json:"expires_at" doc:"When it is destroyed; null for never."`
	UnusedUntil  *time.Time                         `json:"unused_until" doc:"When it is destroyed unless it is used before, because it sleeps or is lost; null for never."`
}

// NewSandbox is the body that makes a named sandbox.
type NewSandbox struct {
	Name         *string                        `json:"name" required:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$" doc:"1 to 64 letters, digits, dots, underscores and hyphens, beginning with a letter or digit. It is the only one of its session."`
	Session      *string                        `json:"session,omitzero" minLength:"1" maxLength:"128" default:"default" doc:"The pool that it belongs to."`
	Image        *string                        `json:"image,omitzero" doc:"Image, such as node:22; the image of the key's environment if omitted."`
	Snapshot     *string                        `json:"snapshot,omitzero" pattern:"^snap-[0-9a-f]{16}$" doc:"The snapshot that it begins with, processes and all."`
	FilesOnly    *bool                          `json:"files_only,omitzero" default:"false" doc:"It begins with the snapshot's files, in a new sandbox of the key's environment: also where the memory cannot be used."`
	Environment  *string                        `json:"environment,omitzero" doc:"The environment of the key, which is the only one that it may use."`
	SleepAfterMS *wire.Millis                   `json:"sleep_after_ms,omitzero" minimum:"-1" doc:"Without use; -1 for never, the server's if omitted."`
	TimeoutMS    *wire.Millis                   `json:"timeout_ms,omitzero" minimum:"1" doc:"Until it is destroyed; as long as the plan allows if omitted."`
	EnvVars      map[string]wire.Text           `json:"env_vars,omitzero" nullable:"true" doc:"Variables of its programs, which override those of environment and key. The rules of an execution's env_vars apply, except that names may contain lowercase letters and start with an underscore."`
	Limits       *SizeLimits                    `json:"limits,omitzero" doc:"At most the limits of the key's environment, which are the default."`
	DiskSize     *int64                         `json:"disk_size,omitzero" minimum:"1048576" doc:"Bytes that /home/user, /tmp and /var/tmp may use together. The maximum that plan and server allow is the default."`
	Network      *environmentwire.NetworkChange `json:"network,omitzero" doc:"Narrows what its environment's network allows."`
	SubPaths     []wire.Text                    `json:"sub_paths,omitzero" nullable:"true" maxItems:"10" doc:"Narrows mounted connections for as long as it lives. Rules as in an execution's sub_paths."`
}

// SizeLimits are the limits that a client can set for one sandbox.
type SizeLimits struct {
	CPU    *float64 `json:"cpu,omitzero" maximum:"1024" doc:"Cores, above 0."`
	Memory *int64   `json:"memory,omitzero" minimum:"67108864" doc:"Bytes. Atoll reduces the limits of in-memory files to fit."`
}

// SandboxTimeout is the body that says when a sandbox is destroyed.
type SandboxTimeout struct {
	TimeoutMS    *wire.Millis `json:"timeout_ms,omitzero" minimum:"0" doc:"From now; 0 for as long as the plan allows."`
	SleepAfterMS *wire.Millis `json:"sleep_after_ms,omitzero" minimum:"-1" doc:"Without use; -1 for never, 0 for the server's."`
}

// SandboxList is a list of sandboxes, by session and name.
type SandboxList struct {
	Data []Sandbox `json:"data"`
}

// SandboxMetrics are what a sandbox uses. All is 0 for one that sleeps on disk.
type SandboxMetrics struct {
	CPUSeconds      float64 `json:"cpu_seconds" doc:"Seconds of processor time since it started."`
	MemoryBytes     int64   `json:"memory_bytes" doc:"Bytes of memory that it uses now."`
	PeakMemoryBytes int64   `json:"peak_memory_bytes" doc:"Bytes of memory that it used at most at one time."`
	DiskBytes       int64   `json:"disk_bytes" doc:"Of /home/user, /tmp and /var/tmp."`
	OOMKills        int     `json:"oom_kills" doc:"Programs that were ended because memory ran out."`
}

// Orphans are what there is of sandboxes that no record knows.
type Orphans struct {
	Data []string `json:"data" doc:"Their ids."`
}

// SandboxPort is a port that something in a sandbox listens on.
type SandboxPort struct {
	Port    int    `json:"port" doc:"The TCP port."`
	Address string `json:"address" doc:"0.0.0.0 and :: are every address."`
}

// SandboxPorts are the ports that something listens on, by number.
type SandboxPorts struct {
	Data []SandboxPort `json:"data"`
}

func sandboxOf(sb *sandbox.Sandbox) Sandbox {
	out := Sandbox{
		ID: string(sb.ID), Name: sb.Name, Session: sb.Session, Image: sb.Image, ImageAlias: sb.ImageAlias, ImageWarning: sb.ImageWarning, Status: string(sb.Status()), Detail: sb.Detail, Kept: string(sb.Sleep),
		Limits: environmentwire.LimitsOf(sb.Limits), DiskSize: sb.Disk, Network: environmentwire.NetworkOf(sb.Permissions.Network), Mounts: append([]string{}, storage.Labels(sb.Mounts)...), CreatedAt: sb.CreatedAt.UTC(), UsedAt: sb.UsedAt.UTC(),
	}
	if sb.SleepAfter >= 0 {
		ms := sb.SleepAfter.Milliseconds()
		out.SleepAfterMS = &ms
	}
	if sb.ExpiresAt != nil {
		out.ExpiresAt = new(sb.ExpiresAt.UTC())
	}
	if sb.UnusedUntil != nil {
		out.UnusedUntil = new(sb.UnusedUntil.UTC())
	}
	return out
}
