package home

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/thread"
)

// Collect removes what no state refers to that live names, which is every state that
// is recorded for the tenant; empty names are left out.
//
// It is safe beside saves, also of other processes, as long as a state is recorded
// within Grace after its save began. A younger state or pack stays. A pack that nothing
// refers to is condemned first, and removed Grace later if that is still so; a
// save refers to packs of other homes only if they are not condemned, by a list
// that it read after it began.
func (s *Store) Collect(ctx context.Context, tenant string, live func(context.Context) ([]string, error)) (done thread.Collected, err error) {
	t, err := s.tenant(ctx, tenant)
	if err != nil {
		return done, err
	}
	now := time.Now()
	condemned, err := s.readDeleted(ctx, t)
	if err != nil {
		return done, err
	}
	packs, err := s.list(ctx, t.packs())
	if err != nil {
		return done, err
	}
	states, err := s.list(ctx, t.states())
	if err != nil {
		return done, err
	}
	recorded, err := live(ctx) // last, so that it has every state that was recorded before it became old
	if err != nil {
		return done, err
	}
	alive := map[State]bool{}
	for _, name := range recorded {
		if name != "" {
			alive[State(name)] = true
		}
	}
	old := func(i storage.BlobInfo) bool { return now.Sub(i.Modified) > s.cfg.Grace }
	dead := map[State]storage.BlobInfo{}
	for name, info := range states {
		switch st := State(name); {
		case st.check() != nil: // nothing of ours
		case !alive[st] && old(info):
			dead[st] = info
		default:
			alive[st] = true
		}
	}
	used, err := s.usedPacks(ctx, t, alive)
	if err != nil {
		return done, err
	}
	next := map[pack]time.Time{}
	var going []storage.BlobInfo
	for name, info := range packs {
		p, ok := parsePack(name)
		if !ok || used[p] || !old(info) {
			continue
		}
		since, ok := condemned[p]
		if !ok {
			since = now
		} else if now.Sub(since) > s.cfg.Grace {
			going = append(going, info)
		}
		next[p] = since
	}
	for p, since := range condemned { // remembered for a while after it is gone
		if _, there := packs[packName(p)]; !there && now.Sub(since) < 3*s.cfg.Grace {
			next[p] = since
		}
	}
	if err := s.markDeleted(ctx, t, next, len(condemned) > 0); err != nil {
		return done, err
	}
	for _, info := range dead {
		if err := s.cfg.Blobs.Delete(ctx, info.Name); err != nil {
			return done, err
		}
		done.States++
		done.Bytes += info.Size
	}
	for _, info := range going {
		if err := s.cfg.Blobs.Delete(ctx, info.Name); err != nil {
			return done, err
		}
		done.Packs++
		done.Bytes += info.Size
	}
	return done, nil
}

// usedPacks returns every pack that one of the states refers to.
func (s *Store) usedPacks(ctx context.Context, t *tenantStore, states map[State]bool) (map[pack]bool, error) {
	used := map[pack]bool{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetches)
	for st := range states {
		group.Go(func() error {
			r, err := s.readRoot(ctx, t, st)
			if err != nil {
				return fmt.Errorf("collect: nothing was removed: state %s: %w", st, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range r.packs {
				used[p] = true
			}
			return nil
		})
	}
	return used, group.Wait()
}

// list returns the names in a folder.
func (s *Store) list(ctx context.Context, folder string) (map[string]storage.BlobInfo, error) {
	all := map[string]storage.BlobInfo{}
	for info, err := range s.cfg.Blobs.List(ctx, folder) {
		if err != nil {
			return nil, err
		}
		all[info.Name[len(folder)+1:]] = info
	}
	return all, nil
}

// condemnedMagic begins the list of condemned packs: a line for each, with its name
// and when it was condemned, in seconds since 1970.
const (
	deletedMagic = "atollC01\n"
	maxDeleted   = 64 << 20
)

var errDeletedFormat = errors.New("the list of condemned packs cannot be read")

func (t *tenantStore) deletedName() string { return t.folder() + "/condemned" }

func (s *Store) markDeleted(ctx context.Context, t *tenantStore, packs map[pack]time.Time, had bool) error {
	if len(packs) == 0 && !had {
		return nil
	}
	out := bytes.NewBufferString(deletedMagic)
	for p, since := range packs {
		fmt.Fprintf(out, "%s %d\n", packName(p), since.Unix())
	}
	return s.cfg.Blobs.Put(ctx, t.deletedName(), out)
}

func parseDeleted(data []byte) (map[pack]time.Time, error) {
	text, ok := strings.CutPrefix(string(data), deletedMagic)
	if !ok || len(data) > maxDeleted {
		return nil, errDeletedFormat
	}
	all := map[pack]time.Time{}
	for line := range strings.Lines(text) {
		name, at, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		b, err := hex.DecodeString(name)
		sec, timeErr := strconv.ParseInt(at, 10, 64)
		if err != nil || timeErr != nil || len(b) != 16 {
			return nil, errDeletedFormat
		}
		all[unique.Make([16]byte(b))] = time.Unix(sec, 0)
	}
	return all, nil
}
