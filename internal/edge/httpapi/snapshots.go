package httpapi

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	snapshotsPath = "/v1/snapshots"
	snapshotPath  = snapshotsPath + "/{snapshot}"
)

func (s *Server) snapshotRoutes() []route {
	return s.acts([]act{
		{http.MethodPost, sandboxPath + "/snapshots", "snapshot_create", s.createSnapshot},
		{http.MethodGet, snapshotsPath, "", s.listSnapshots},
		{http.MethodGet, snapshotPath, "", s.getSnapshot},
		{http.MethodDelete, snapshotPath, "snapshot_delete", s.deleteSnapshot},
	})
}

// createSnapshot keeps a sandbox as it is at one moment.
func (s *Server) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil, "keep_ms")
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	keep, err := queryInt(p.query, "keep_ms", 0, 1, maxKeep.Milliseconds())
	if err != nil {
		return err
	}
	sn, err := s.sandboxes.Snapshot(r.Context(), p.caller, p.session, p.name, time.Duration(keep)*time.Millisecond)
	if err != nil {
		return err
	}
	w.Header().Set("Location", snapshotsPath+"/"+string(sn.ID))
	return writeJSON(w, http.StatusCreated, snapshotWire(sn))
}

// maxKeep is the longest time that a caller can say a snapshot is kept for.
const maxKeep = 10 * 365 * 24 * time.Hour

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeSandboxes)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "limit", "page")
	if err != nil {
		return err
	}
	if q.Has("page") && q.Get("page") == "" {
		return invalid("page must be the next_page of an earlier answer")
	}
	limit, err := queryInt(q, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return err
	}
	page, next, err := s.sandboxes.ListSnapshots(r.Context(), caller, q.Get("page"), int(limit))
	if err != nil {
		return err
	}
	body := SnapshotPage{Data: make([]Snapshot, len(page))}
	for i, sn := range page {
		body.Data[i] = snapshotWire(sn)
	}
	if next != "" {
		body.NextPage = &next
	}
	return writeJSON(w, http.StatusOK, body)
}

// onSnapshot finds the caller, and which snapshot is meant.
func (s *Server) onSnapshot(r *http.Request) (*tenant.Principal, sandbox.SnapshotID, error) {
	caller, err := s.authorize(r, tenant.ScopeSandboxes)
	if err != nil {
		return nil, "", err
	}
	if _, err := parseQuery(r); err != nil {
		return nil, "", err
	}
	id := sandbox.SnapshotID(r.PathValue("snapshot"))
	if !id.Valid() {
		return nil, "", fault.New(fault.NotFound, "there is no snapshot %.80q", id)
	}
	trailOf(r.Context()).by(caller, "", string(id))
	return caller, id, nil
}

func (s *Server) getSnapshot(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onSnapshot(r)
	if err != nil {
		return err
	}
	sn, err := s.sandboxes.GetSnapshot(r.Context(), caller, id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, snapshotWire(sn))
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onSnapshot(r)
	if err != nil {
		return err
	}
	if err := s.sandboxes.DeleteSnapshot(r.Context(), caller, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Snapshot is a sandbox as it was at one moment.
type Snapshot struct {
	ID        string     `json:"snapshot_id" doc:"snap- and 16 hexadecimal digits."`
	SandboxID string     `json:"sandbox_id" doc:"The sandbox that it is of, which may be gone."`
	Name      string     `json:"name" doc:"Of that sandbox."`
	Session   string     `json:"session" doc:"Likewise."`
	Image     string     `json:"image" doc:"As it was asked for."`
	Memory    bool       `json:"memory" doc:"Whether it has processes and memory; otherwise it has files alone."`
	Detail    string     `json:"detail,omitzero" doc:"Why it has no memory."`
	Limits    Limits     `json:"limits"`
	SizeBytes int64      `json:"size_bytes" doc:"Of all that is kept, before it is compressed."`
	DiskBytes int64      `json:"disk_bytes" doc:"What its files take on disk."`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at" doc:"When it is deleted; null for never."`
}

// SnapshotPage is a part of a list, newest first.
type SnapshotPage struct {
	Data     []Snapshot `json:"data" nullable:"false"`
	NextPage *string    `json:"next_page" doc:"Give it as page to get the next part; null at the end."`
}

func snapshotWire(sn *sandbox.Snapshot) Snapshot {
	out := Snapshot{
		ID: string(sn.ID), SandboxID: string(sn.Sandbox), Name: sn.Name, Session: sn.Session, Image: sn.ImageAlias, Memory: sn.Stored.Checkpoint, Detail: sn.Detail,
		Limits: limitsWire(sn.Limits), SizeBytes: sn.Stored.Bytes, DiskBytes: sn.Stored.Disk, CreatedAt: sn.CreatedAt.UTC(),
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
