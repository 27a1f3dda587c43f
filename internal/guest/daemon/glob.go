package daemon

import (
	"bytes"
	"cmp"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// maxMatches bounds what is looked at to find the first of the matches in order.
const maxMatches = 200_000

// glob answers with the paths that match a pattern.
func (c *peer) glob(q *proto.Glob) bool {
	g := &globber{limit: q.Limit}
	stop := c.watchOut(func() { g.gone.Store(true) })
	err := g.find(q)
	stop()
	return c.reply(proto.Reply{Paths: g.found, Truncated: g.truncated}, err)
}

type globber struct {
	limit     int
	found     [][]byte
	truncated bool
	gone      atomic.Bool // the host does not wait for the answer any more
}

func (g *globber) find(q *proto.Glob) error {
	dir, err := place(q.Dir)
	if err != nil {
		return err
	}
	alternatives, err := parsePattern(string(q.Pattern))
	if err != nil {
		return err
	}
	if g.limit <= 0 || g.limit > maxEntries {
		g.limit = maxEntries
	}
	err = asUser(func() error {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return step("look in", dir, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return step("look in", dir, unix.ENOTDIR)
		}
		for base, names := range byBase(alternatives) {
			g.below(dir, base, names)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(g.found, bytes.Compare)
	g.found = slices.CompactFunc(g.found, bytes.Equal)
	total := 0
	for i, p := range g.found {
		if total += len(p) + 4; i >= g.limit || total > maxAnswer {
			g.found, g.truncated = g.found[:i], true
			break
		}
	}
	return nil
}

// over reports whether nothing more is looked for.
func (g *globber) over() bool {
	if len(g.found) >= maxMatches {
		g.truncated = true
	}
	return g.truncated || g.gone.Load()
}

// below looks for what alternatives with the same base match.
func (g *globber) below(dir, base string, alternatives []alternative) {
	w := globWalk{globber: g, root: base, prefix: base, alternatives: alternatives}
	if !path.IsAbs(base) {
		w.root = path.Join(dir, base)
	}
	if base != "" && base != "/" {
		w.prefix += "/"
	}
	var states []globState
	for i, a := range alternatives {
		if !a.literal {
			states = append(states, globState{i, 0})
			continue
		}
		at := cmp.Or(strings.TrimSuffix(w.prefix+a.names[0], "/"), base)
		if at == "" || at == "." {
			continue // where it looks is no match
		}
		if st, err := os.Stat(w.root + "/" + a.names[0]); err == nil && (st.IsDir() || !a.folder) && !g.over() {
			g.found = append(g.found, []byte(at))
		}
	}
	if st, err := os.Stat(w.root); len(states) == 0 || err != nil || !st.IsDir() {
		return
	}
	states = w.closure(states)
	if base != "" && w.accepts(states) {
		g.found = append(g.found, []byte(base))
	}
	w.folder(w.root, w.prefix, states)
}

// globWalk looks through a folder for several alternatives at once, so that each folder
// is read once. An alternative is a row of names, and a state is how many of them the
// way down to a folder has matched.
type globWalk struct {
	*globber
	root         string
	prefix       string // of what is found: the alternatives' base
	alternatives []alternative
}

type globState struct{ alternative, matched int }

// next is the name that a state needs next; ok is false where none is left.
func (w *globWalk) next(s globState) (name string, ok bool) {
	names := w.alternatives[s.alternative].names
	if s.matched == len(names) {
		return "", false
	}
	return names[s.matched], true
}

// closure adds those states that follow because ** also stands for no folder.
func (w *globWalk) closure(states []globState) []globState {
	for i := 0; i < len(states); i++ { // it grows meanwhile
		if name, _ := w.next(states[i]); name == "**" {
			states = append(states, globState{states[i].alternative, states[i].matched + 1})
		}
	}
	slices.SortFunc(states, func(a, b globState) int {
		return cmp.Or(a.alternative-b.alternative, a.matched-b.matched)
	})
	return slices.Compact(states)
}

// accepts reports whether a folder matches.
func (w *globWalk) accepts(states []globState) bool {
	return slices.ContainsFunc(states, func(s globState) bool {
		_, more := w.next(s)
		return !more
	})
}

// folder looks through a folder, which is found under the name of prefix.
func (w *globWalk) folder(at, prefix string, states []globState) {
	if w.root == "/" && (at == "/proc" || at == "/sys") {
		return // no user's file is there, and it has no end
	}
	if !slices.ContainsFunc(states, func(s globState) bool { _, more := w.next(s); return more }) {
		return
	}
	entries, err := readDir(at)
	if err != nil {
		return
	}
	for _, e := range entries {
		below, matches := w.entry(e, states)
		if w.over() {
			return
		}
		if matches {
			w.found = append(w.found, []byte(prefix+e.Name()))
		}
		if len(below) > 0 {
			w.folder(path.Join(at, e.Name()), prefix+e.Name()+"/", below)
		}
	}
}

// entry says of what is in a folder whether it matches, and the states that it has as a
// folder. Links lead nowhere.
func (w *globWalk) entry(e os.DirEntry, states []globState) (below []globState, matches bool) {
	for _, s := range states {
		if w.gone.Load() {
			return nil, false
		}
		name, more := w.next(s)
		if !more {
			continue
		}
		last := s.matched+1 == len(w.alternatives[s.alternative].names)
		if name == "**" {
			matches = matches || last && !w.alternatives[s.alternative].folder
			below = append(below, s)
		} else if doublestar.MatchUnvalidated(name, e.Name()) {
			matches = matches || last && !w.alternatives[s.alternative].folder
			below = append(below, globState{s.alternative, s.matched + 1})
		}
	}
	if !e.IsDir() {
		return nil, matches
	}
	below = w.closure(below)
	return below, matches || w.accepts(below)
}
