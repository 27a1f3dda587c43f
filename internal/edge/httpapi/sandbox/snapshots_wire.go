package sandbox

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Snapshot is a sandbox as it was at one moment.
type Snapshot struct {
	ID        string                 `json:"snapshot_id" doc:"snap- and 16 hexadecimal digits."`
	SandboxID string                 `json:"sandbox_id" doc:"The sandbox of the snapshot, which may no longer exist."`
	Name      string                 `json:"name" doc:"The name of that sandbox."`
	Session   string                 `json:"session" doc:"The session of that sandbox."`
	Image     string                 `json:"image" doc:"As it was asked for."`
	Memory    bool                   `json:"memory" doc:"Whether it has processes and memory; otherwise it has files alone."`
	Detail    string                 `json:"detail,omitzero" doc:"Why it has no memory."`
	Limits    environmentwire.Limits `json:"limits"`
	SizeBytes int64                  `json:"size_bytes" doc:"Of all that is kept, before it is compressed."`
	DiskBytes int64                  `json:"disk_bytes" doc:"Size of its files on disk."`
	CreatedAt time.Time              `json:"created_at"`
	ExpiresAt *time.Time             `json:"expires_at" doc:"When it is deleted; null for never."`
}

// SnapshotPage is a part of a list, newest first.
type SnapshotPage struct {
	Data     []Snapshot `json:"data"`
	NextPage *string    `json:"next_page" doc:"Give it as page to get the next part; null at the end."`
}

func snapshotOf(sn *sandbox.Snapshot) Snapshot {
	out := Snapshot{
		ID: string(sn.ID), SandboxID: string(sn.Sandbox), Name: sn.Name, Session: sn.Session, Image: sn.ImageAlias, Memory: sn.Stored.Checkpoint, Detail: sn.Detail,
		Limits: environmentwire.LimitsOf(sn.Limits), SizeBytes: sn.Stored.Bytes, DiskBytes: sn.Stored.Disk, CreatedAt: sn.CreatedAt.UTC(),
	}
	if out.Image == "" {
		out.Image = sn.Image
	}
	if sn.ExpiresAt != nil {
		at := sn.ExpiresAt.UTC()
		out.ExpiresAt = &at
	}
	return out
}
