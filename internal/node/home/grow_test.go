package home

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// grower changes a home at random, as programs would.
type grower struct {
	t   testing.TB
	rnd *rand.Rand
	dir string

	plain bool // only what a tar archive can say
}

// own gives a path to some user of the sandbox.
func (g *grower) own(path string) {
	uid := int(testOwners.UID.Host) + []int{0, 1000, 65534}[g.rnd.IntN(3)]
	g.must(os.Lchown(path, uid, uid))
}

func (g *grower) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// paths lists all that is there of a kind; with no kind, everything.
func (g *grower) paths(want func(os.FileMode) bool) (all []string) {
	g.must(filepath.Walk(g.dir, func(path string, i os.FileInfo, err error) error {
		if err == nil && want(i.Mode()) {
			all = append(all, path)
		}
		return err
	}))
	return all
}

func (g *grower) pick(all []string) string { return all[g.rnd.IntN(len(all))] }

var oddNames = []string{"-rf", "a b", "new\nline", "\xff\xfe", "ä", "*", "...", `back\slash`, "\x01", "'\"", ".hidden"}

func (g *grower) name() string {
	switch g.rnd.IntN(6) {
	case 0:
		return oddNames[g.rnd.IntN(len(oddNames))]
	case 1:
		return string(bytes.Repeat([]byte{byte('a' + g.rnd.IntN(26))}, 255))
	}
	return fmt.Sprint("f", g.rnd.IntN(40))
}

func (g *grower) bytes() []byte {
	n := []int{0, 1, 100, 5000, 100_000, 2<<20 + 17}[g.rnd.IntN(6)]
	b := make([]byte, n)
	if g.rnd.IntN(2) == 0 {
		for i := range b {
			b[i] = byte(g.rnd.Uint32())
		}
	}
	return b
}

func (g *grower) change(n int) {
	for range n {
		dirs := g.paths(os.FileMode.IsDir)
		path := filepath.Join(g.pick(dirs), g.name())
		_, err := os.Lstat(path)
		free := errors.Is(err, os.ErrNotExist)
		switch what := g.rnd.IntN(16); {
		case what < 5 && free:
			g.must(os.WriteFile(path, g.bytes(), 0o600))
			g.dress(path, true)
		case what < 7 && free:
			g.must(os.Mkdir(path, 0o700))
			g.dress(path, true)
		case what == 7 && free:
			g.must(os.Symlink(g.pick([]string{"/etc/passwd", "../../..", "nowhere", "\xff", path}), path))
			g.own(path)
		case what == 8 && free:
			g.must(unix.Mkfifo(path, 0o600))
			g.dress(path, false)
		case what == 9 && free:
			if files := g.paths(os.FileMode.IsRegular); len(files) > 0 {
				g.must(os.Link(g.pick(files), path))
			}
		case what == 10 && free && !g.plain:
			g.sparse(path)
		case what == 11 && !g.plain:
			if files := g.paths(os.FileMode.IsRegular); len(files) > 0 {
				f, err := os.OpenFile(g.pick(files), os.O_WRONLY, 0)
				g.must(err)
				i, err := f.Stat()
				g.must(err)
				_, err = f.WriteAt([]byte("changed"), g.rnd.Int64N(i.Size()%(4<<20)+1))
				g.must(err)
				g.must(f.Close())
			}
		case what == 12 && free:
			all := g.paths(func(os.FileMode) bool { return true })
			if from := g.pick(all); from != g.dir {
				if err := os.Rename(from, path); err != nil && !errors.Is(err, unix.EINVAL) {
					g.t.Fatal(err)
				}
			}
		case what == 13:
			all := g.paths(func(os.FileMode) bool { return true })
			if gone := g.pick(all); gone != g.dir {
				g.must(os.RemoveAll(gone))
			}
		case what == 14:
			g.dress(g.pick(g.paths(func(m os.FileMode) bool { return m.IsDir() || m.IsRegular() })), true)
		case what == 15 && !g.plain:
			if files := g.paths(os.FileMode.IsRegular); len(files) > 0 {
				g.must(os.Truncate(g.pick(files), g.rnd.Int64N(2<<20)))
			}
		}
	}
}

// dress changes metadata.
func (g *grower) dress(path string, attributes bool) {
	g.own(path)
	g.must(unix.Chmod(path, uint32(g.rnd.IntN(0o1000))|uint32(g.rnd.IntN(2)*unix.S_ISVTX)))
	if attributes && !g.plain && g.rnd.IntN(2) == 0 {
		name := fmt.Sprintf("user.a%d\xff", g.rnd.IntN(4))
		if g.rnd.IntN(3) == 0 {
			if err := unix.Removexattr(path, name); err != nil && err != unix.ENODATA {
				g.t.Fatal(err)
			}
		} else {
			g.must(unix.Setxattr(path, name, g.bytes()[:0:0], 0))
			g.must(unix.Setxattr(path, name, []byte{0, 1, byte(g.rnd.Uint32())}, 0))
		}
	}
	if g.rnd.IntN(2) == 0 {
		at := time.Unix(g.rnd.Int64N(4_000_000_000)-1_000_000_000, g.rnd.Int64N(1_000_000_000))
		g.must(os.Chtimes(path, at.Add(time.Hour), at))
	}
}

func (g *grower) sparse(path string) {
	f, err := os.Create(path)
	g.must(err)
	for range g.rnd.IntN(4) {
		_, err := f.WriteAt([]byte("data"), g.rnd.Int64N(6<<20))
		g.must(err)
	}
	g.must(f.Truncate(g.rnd.Int64N(8 << 20)))
	g.must(f.Close())
	g.own(path)
}

// ownAll gives everything to a user of the sandbox, as it is for programs' files.
func (g *grower) ownAll() {
	g.must(filepath.Walk(g.dir, func(path string, i os.FileInfo, err error) error {
		if err == nil && i.Sys().(*syscall.Stat_t).Uid < testOwners.UID.Host {
			err = os.Lchown(path, int(testOwners.UID.Host)+1000, int(testOwners.UID.Host)+1000)
		}
		return err
	}))
}
