package tools

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// equipment puts the folders of skills into sandboxes.
type equipment struct {
	mu  sync.Mutex
	now map[runtime.ID]*equipping // guarded by mu; of sandboxes that are looked at
	old map[runtime.ID]bool       // guarded by mu; those that can have no folders
}

// equipping is a sandbox that calls look at, one after the other.
type equipping struct {
	turn  chan struct{} // has a token unless a call looks
	calls int           // guarded by equipment.mu
}

// versionsFile stands in a sandbox beside the folders, and says which versions they are: a line of
// name and version each.
const versionsFile = ".versions"

// maxVersions bounds what is read of it, in bytes.
const maxVersions = 64 << 10

// enter waits for the turn of a call. leave ends it.
func (q *equipment) enter(ctx context.Context, id runtime.ID) (leave func(), err error) {
	q.mu.Lock()
	if q.now == nil {
		q.now = map[runtime.ID]*equipping{}
	}
	e := q.now[id]
	if e == nil {
		e = &equipping{turn: make(chan struct{}, 1)}
		e.turn <- struct{}{}
		q.now[id] = e
	}
	e.calls++
	q.mu.Unlock()
	drop := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if e.calls--; e.calls == 0 {
			delete(q.now, id)
		}
	}
	select {
	case <-e.turn:
		return func() { e.turn <- struct{}{}; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, context.Cause(ctx)
	}
}

func (q *equipment) isOld(id runtime.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.old[id]
}

func (q *equipment) setOld(id runtime.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.old == nil || len(q.old) >= maxMounted {
		q.old = map[runtime.ID]bool{}
	}
	q.old[id] = true
}

// equip gives a sandbox the folders of the caller's skills, unless it has them. They go with its
// programs, when the server ends those.
func (c *call) equip(ctx context.Context, h sandbox.Handle) error {
	id := h.Sandbox().ID
	q := &c.set.equipment
	if len(c.by.Skills) == 0 || c.set.cfg.Skills == nil || q.isOld(id) {
		return nil
	}
	leave, err := q.enter(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	has, err := versions(ctx, h)
	if err != nil {
		return err
	}
	var files []execution.SkillFile
	for _, s := range c.by.Skills {
		if has[s.Name] == s.Version {
			continue
		}
		of, err := c.set.cfg.Skills.SkillFiles(ctx, c.by.Principal.Tenant.ID, s)
		if fault.KindOf(err) == fault.NotFound {
			return fault.Wrap(fault.Conflict, err, "the skill "+s.Name+" was deleted")
		}
		if err != nil {
			return err
		}
		files = append(files, of...)
		has[s.Name] = s.Version
	}
	if len(files) == 0 {
		return nil
	}
	archive, err := packed(files, has)
	if err != nil {
		return err
	}
	if err = h.Guest().PutSkills(ctx, archive); err != nil && fault.KindOf(err) == fault.Invalid {
		q.setOld(id)
		return nil
	}
	return err
}

// versions are those of the folders that a sandbox has, by name.
func versions(ctx context.Context, h sandbox.Handle) (map[string]string, error) {
	has := map[string]string{}
	_, body, err := h.Guest().Read(ctx, skill.Dir+"/"+versionsFile, 0, maxVersions)
	switch {
	case err != nil && fault.KindOf(err) == fault.Internal:
		return nil, err
	case err != nil: // there is none, or rules of the sandbox hide it
		return has, nil
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxVersions))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, version, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		has[name] = version
	}
	return has, nil
}

// packed is an archive of files of skills, with what their versions are last: it is only there
// when all else is.
func packed(files []execution.SkillFile, has map[string]string) (io.Reader, error) {
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(has)) {
		fmt.Fprintf(&list, "%s %s\n", name, has[name])
	}
	files = append(files, execution.SkillFile{Path: skill.Dir + "/" + versionsFile, Data: []byte(list.String())})
	out := &bytes.Buffer{}
	w := tar.NewWriter(out)
	for _, f := range files {
		mode := int64(0o444)
		if f.Exec {
			mode = 0o555
		}
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(f.Path, skill.Dir+"/"), Mode: mode, Size: int64(len(f.Data)), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	return out, w.Close()
}
