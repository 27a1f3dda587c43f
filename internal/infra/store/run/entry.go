package run

import (
	"encoding/json"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// sealedEntry is an entry of a run's log, as it is stored: JSON, compressed and
// encrypted.
type sealedEntry struct {
	of     tenant.ID
	seq    int64
	sealed []byte
}

var entryView = sqldb.NewView(
	sqldb.Col("r.tenant", sqldb.Read, func(e *sealedEntry) any { return &e.of }),
	sqldb.Col("e.seq", sqldb.Read, func(e *sealedEntry) any { return &e.seq }),
	sqldb.Col("e.entry", sqldb.Read, func(e *sealedEntry) any { return &e.sealed }),
)

func entryPlace(id run.ID, seq int64) string { return fmt.Sprintf("run_entries/%s/%d", id, seq) }

func (s *Store) sealEntries(of tenant.ID, id run.ID, entries []run.Entry) ([]sealedEntry, error) {
	out := make([]sealedEntry, len(entries))
	for i := range entries {
		sealed, err := s.db.SealPacked(of, &entries[i], entryPlace(id, entries[i].Seq))
		if err != nil {
			return nil, fmt.Errorf("store: entry %d of run %s: %w", entries[i].Seq, id, err)
		}
		out[i] = sealedEntry{of, entries[i].Seq, sealed}
	}
	return out, nil
}

func (s *Store) openEntry(id run.ID, r *sealedEntry, e *run.Entry) error {
	plain, err := s.db.OpenPacked(r.of, r.sealed, entryPlace(id, r.seq))
	if err != nil {
		return sqldb.About(err, "entry of run", string(id))
	}
	return json.Unmarshal(plain, e)
}
