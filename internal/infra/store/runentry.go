package store

import (
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// sealedEntry is an entry of a run's log, as it is stored: JSON, compressed and
// encrypted.
type sealedEntry struct {
	seq    int64
	sealed []byte
}

// maxEntry bounds an entry as JSON. It is well above what requests and answers may have.
const maxEntry = 64 << 20

var (
	entryWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	entryReader, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxEntry))
)

func entryPlace(id run.ID, seq int64) string { return fmt.Sprintf("run_entries/%s/%d", id, seq) }

func (db *DB) sealEntries(of tenant.ID, id run.ID, entries []run.Entry) ([]sealedEntry, error) {
	out := make([]sealedEntry, len(entries))
	for i := range entries {
		plain, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, fmt.Errorf("store: entry %d of run %s: %w", entries[i].Seq, id, err)
		}
		out[i] = sealedEntry{entries[i].Seq, db.seal.SealFor(of, entryWriter.EncodeAll(plain, nil), entryPlace(id, entries[i].Seq))}
	}
	return out, nil
}

func (db *DB) openEntry(of tenant.ID, id run.ID, seq int64, sealed []byte, e *run.Entry) error {
	packed, err := db.seal.OpenFor(of, sealed, entryPlace(id, seq))
	if err != nil {
		return about(err, "entry of run", string(id))
	}
	plain, err := entryReader.DecodeAll(packed, nil)
	if err != nil {
		return about(err, "entry of run", string(id))
	}
	return json.Unmarshal(plain, e)
}
