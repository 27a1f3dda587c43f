package openai

import (
	"strings"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi/openaiwire"
)

// anchor is what the time of a container counts from.
const anchor = "last_active_at"

// NewContainer is the body that makes a container.
type NewContainer struct {
	Name         *string       `json:"name" required:"true" minLength:"1" maxLength:"256" doc:"A name, which need not be the only one."`
	ExpiresAfter *ExpiresAfter `json:"expires_after,omitzero" doc:"When it is deleted without a use."`
	openaiwire.ContainerOptions
}

// ExpiresAfter says how long a container lives without use.
type ExpiresAfter struct {
	Anchor  *string `json:"anchor" required:"true" enum:"last_active_at" doc:"From when minutes count: its last use."`
	Minutes *int64  `json:"minutes" required:"true" minimum:"1" maximum:"43200" doc:"Minutes without a use after which it is deleted, 1 to 43200."`
}

// Container is a sandbox of code_interpreter.
type Container struct {
	ID            string                  `json:"id" required:"true"`
	Object        string                  `json:"object" required:"true" enum:"container"`
	CreatedAt     int64                   `json:"created_at" required:"true" doc:"Seconds since 1970."`
	Status        string                  `json:"status" required:"true" enum:"running,expired" doc:"running also while it sleeps: a use wakes it."`
	ExpiresAfter  ExpiresAfter            `json:"expires_after" required:"true" doc:"When it is deleted without a use."`
	LastActiveAt  int64                   `json:"last_active_at" required:"true" doc:"When it was last used, in seconds since 1970."`
	MemoryLimit   *string                 `json:"memory_limit" required:"true" nullable:"true" doc:"null where it is none of OpenAI's sizes."`
	Name          string                  `json:"name" required:"true"`
	NetworkPolicy *ContainerNetworkPolicy `json:"network_policy" doc:"null where every host may be reached."`
}

// ContainerNetworkPolicy is what a container may reach.
type ContainerNetworkPolicy struct {
	Type           string   `json:"type" required:"true" enum:"disabled,allowlist"`
	AllowedDomains []string `json:"allowed_domains,omitzero" doc:"Hosts that it may reach."`
}

// ContainerList is a page of containers.
type ContainerList struct {
	Object  string      `json:"object" required:"true" enum:"list"`
	Data    []Container `json:"data" required:"true"`
	FirstID *string     `json:"first_id" required:"true" nullable:"true" doc:"The id of the first item of this page; null if it is empty."`
	LastID  *string     `json:"last_id" required:"true" nullable:"true" doc:"The id of the last item of this page; null if it is empty."`
	HasMore bool        `json:"has_more" required:"true" doc:"Whether another page follows; give last_id as after to get it."`
}

// DeletedContainer says that a container was deleted.
type DeletedContainer struct {
	ID      string `json:"id" required:"true"`
	Object  string `json:"object" required:"true" enum:"container.deleted"`
	Deleted bool   `json:"deleted" required:"true" doc:"Always true."`
}

// ContainerFile is a file of a container.
type ContainerFile struct {
	ID          string `json:"id" required:"true"`
	Object      string `json:"object" required:"true" enum:"container.file"`
	ContainerID string `json:"container_id" required:"true" doc:"The container that it is in."`
	CreatedAt   int64  `json:"created_at" required:"true" doc:"When it was last written: seconds since 1970."`
	Bytes       int64  `json:"bytes" required:"true" doc:"Size in bytes."`
	Path        string `json:"path" required:"true" doc:"Bytes that are not UTF-8 are replaced by U+FFFD."`
	Source      string `json:"source" required:"true" enum:"user,assistant" doc:"user for a file with the permissions of an upload, 0664; assistant for others."`
}

// ContainerFileList is a page of files.
type ContainerFileList struct {
	Object  string          `json:"object" required:"true" enum:"list"`
	Data    []ContainerFile `json:"data" required:"true"`
	FirstID *string         `json:"first_id" required:"true" nullable:"true" doc:"The id of the first item of this page; null if it is empty."`
	LastID  *string         `json:"last_id" required:"true" nullable:"true" doc:"The id of the last item of this page; null if it is empty."`
	HasMore bool            `json:"has_more" required:"true" doc:"Whether another page follows; give last_id as after to get it."`
}

// DeletedContainerFile says that a file was deleted.
type DeletedContainerFile struct {
	ID      string `json:"id" required:"true"`
	Object  string `json:"object" required:"true" enum:"container.file.deleted"`
	Deleted bool   `json:"deleted" required:"true" doc:"Always true."`
}

func containerOf(c *sandboxes.Container) Container {
	sb, s := c.Sandbox, c.Settings
	out := Container{
		ID: string(container.IDOf(sb.ID)), Object: "container", CreatedAt: sb.CreatedAt.Unix(), Status: "running", LastActiveAt: sb.UsedAt.Unix(),
		ExpiresAfter: ExpiresAfter{Anchor: new(anchor), Minutes: new(int64(s.Minutes))}, MemoryLimit: container.MemoryLimit(sb.Limits.Memory), Name: s.Name,
	}
	if !container.Alive(sb) {
		out.Status = "expired"
	}
	switch n := sb.Permissions.Network; {
	case n.Blocked():
		out.NetworkPolicy = &ContainerNetworkPolicy{Type: "disabled"}
	case n.Mode != runtime.NetworkUnrestricted:
		out.NetworkPolicy = &ContainerNetworkPolicy{Type: "allowlist", AllowedDomains: append([]string{}, n.AllowedHosts...)}
	}
	return out
}

func fileOf(c container.ID, f *file.Info) ContainerFile {
	out := ContainerFile{
		ID: string(container.FileIDOf(c, f.Path)), Object: "container.file", ContainerID: string(c), CreatedAt: f.Modified.Unix(), Bytes: f.Size,
		Path: strings.ToValidUTF8(f.Path, "\ufffd"), Source: "assistant",
	}
	if f.Mode.Perm() == container.FileMode {
		out.Source = "user"
	}
	return out
}
