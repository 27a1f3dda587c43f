package conversation

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ErrNoFile says that a session has no such file.
var ErrNoFile = fault.New(fault.NotFound, "file not found in this session")

// readPage is how many events or threads one query reads at most.
const readPage = 100

// SharedFiles returns a page of the files that the agents of a session have shared, oldest first. Each
// is the note of its event.
func (s *Service) SharedFiles(ctx context.Context, t tenant.ID, id session.ID, p agent.Page) ([]session.TreeEvent, string, error) {
	of, err := s.Find(ctx, t, id)
	if err != nil {
		return nil, "", err
	}
	return s.Store.Tree(ctx, of.Tenant, of.ID, run.EventFile, p)
}

// FileOf returns the file that an event is about. It is empty if a later version wrote the event.
func FileOf(e *session.Event) (u sandboxtool.FileUse) {
	_ = json.Unmarshal(e.Note.Data, &u)
	return u
}

// SharedFile finds a file that an agent of any session of a tenant has shared.
func (s *Service) SharedFile(ctx context.Context, t tenant.ID, fileID string) (session.ID, *sandboxtool.FileUse, error) {
	r, err := s.Records.Run(ctx, t, sandboxtool.RunOf(fileID))
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return "", nil, err
	}
	if err != nil || r.Session == "" {
		return "", nil, ErrNoFile
	}
	u, err := s.FileIn(ctx, t, session.ID(r.Session), fileID)
	return session.ID(r.Session), u, err
}

// FileIn finds a file that an agent of a session has shared.
func (s *Service) FileIn(ctx context.Context, t tenant.ID, id session.ID, fileID string) (*sandboxtool.FileUse, error) {
	of, err := s.Find(ctx, t, id)
	if err != nil {
		return nil, err
	}
	in := sandboxtool.RunOf(fileID)
	if in == "" {
		return nil, ErrNoFile
	}
	for p := (agent.Page{Limit: readPage}); ; {
		page, next, err := s.Store.Tree(ctx, of.Tenant, of.ID, run.EventFile, p)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if u := FileOf(&page[i].Event); page[i].Run == in && u.FileID == fileID {
				return &u, nil
			}
		}
		if p.Cursor = next; next == "" {
			return nil, ErrNoFile
		}
	}
}
