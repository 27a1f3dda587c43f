package daemon

import (
	"bytes"
	"io/fs"
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
	pattern := string(q.Pattern)
	if pattern == "" || strings.IndexByte(pattern, 0) >= 0 {
		return refuse(proto.Invalid, "the pattern is empty or has a NUL in it")
	}
	if !doublestar.ValidatePattern(pattern) {
		return refuse(proto.Invalid, "%q is no pattern: a bracket, a brace or a backslash is not followed by what belongs to it", pattern)
	}
	if g.limit <= 0 || g.limit > maxEntries {
		g.limit = maxEntries
	}
	// What comes before the first special character is a path like any other.
	base, rest := doublestar.SplitPattern(pattern)
	rest = once(rest)
	root := path.Join("/", base)
	if !path.IsAbs(base) {
		root = path.Join(dir, base)
	}
	err = asUser(func() error {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return step("look in", dir, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return step("look in", dir, unix.ENOTDIR)
		}
		return doublestar.GlobWalk(&tree{root: root, globber: g}, rest, func(p string, _ fs.DirEntry) error {
			switch {
			case g.gone.Load():
				return fs.SkipAll
			case len(g.found) >= maxMatches:
				g.truncated = true
				return fs.SkipAll
			}
			switch {
			case p == "." && base == ".":
				return nil // where it looks is no match
			case p == ".":
				p = base
			case base != ".":
				p = strings.TrimSuffix(base, "/") + "/" + p
			}
			g.found = append(g.found, []byte(p))
			return nil
		}, doublestar.WithNoFollow())
	})
	if err != nil && err != fs.SkipAll {
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

// once leaves one ** of several in a row, which mean the same and take time that grows
// with the power of their number.
func once(pattern string) string {
	names := slices.CompactFunc(strings.Split(pattern, "/"), func(a, b string) bool { return a == "**" && b == "**" })
	return strings.Join(names, "/")
}

// tree is a folder as package fs has it, but for its rule that names are UTF-8.
type tree struct {
	root string
	*globber
}

func (t *tree) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}

func (t *tree) at(name string) string { return path.Join(t.root, name) }

func (t *tree) Stat(name string) (fs.FileInfo, error) { return os.Stat(t.at(name)) }

func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	at := t.at(name)
	if t.gone.Load() || t.root == "/" && (at == "/proc" || at == "/sys") {
		return nil, fs.ErrNotExist // no user's file is there, and it has no end
	}
	return readDir(at)
}
