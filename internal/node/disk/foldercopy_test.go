package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const someone = 525_288 // whose files are carried

// carriage is a folder "from" with what a script makes, all of it someone's, and a folder
// "to" that is closed to them.
func carriage(t *testing.T, script string) (dir string, c FolderCopier) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.Command("sh", "-ec", "mkdir from to; chmod 700 to; cd from; "+script+"\nchown -hR 525288:525288 .")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir, FolderCopier{UID: someone, GID: someone, More: func(spent int64) (int64, error) { return spent + 1000, nil }}
}

// listing is what there is in a folder, a line each.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command("find", ".", "-printf", `%P|%y|%m|%U:%G|%n|%T@|%l|`, "(", "-type", "d", "-printf", `\n`, "-o", "-printf", `%s\n`, ")")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	slices.Sort(lines)
	return lines
}

func TestCarry(t *testing.T) {
	dir, c := carriage(t, `umask 077; mkdir -p tree/a/b/c 'tree/ -n
x' tree/empty; cd tree; printf data >a/b/file; ln a/b/file a/again; ln a/b/file last; ln -s ../../../../etc/passwd a/link; ln -s nowhere broken; mkfifo -m 600 pipe; : >void
head -c 300000 /dev/urandom >large; truncate -s 40M holes; printf end >>holes; dd if=/dev/urandom of=holes bs=4096 count=1 seek=1000 conv=notrunc 2>/dev/null
touch "$(printf 'odd\377\n')"; chmod 4751 a/b/file; chmod 1777 a; chmod 0551 a/b; touch -d '2001-02-03 04:05:06.789' a/b/file a a/b .; touch -h -d 2002-03-04 broken`)
	files, bytes, err := c.Copy(t.Context(), Place{dir, "from//tree"}, Place{filepath.Join(dir, "to"), ""}, "copy")
	if err != nil {
		t.Fatal(err)
	}
	if files != 16 || bytes != 4+0+300_000+(40<<20)+3+0 {
		t.Errorf("%d entries, %d bytes", files, bytes)
	}
	from, to := filepath.Join(dir, "from/tree"), filepath.Join(dir, "to/copy")
	if a, b := listing(t, from), listing(t, to); !slices.Equal(a, b) {
		t.Errorf("the copy is\n%s\nof\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
	}
	for _, name := range []string{"a/b/file", "large", "holes"} {
		a, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	var one, two, st unix.Stat_t
	if err := errors.Join(unix.Stat(filepath.Join(to, "a/b/file"), &one), unix.Stat(filepath.Join(to, "last"), &two)); err != nil || one.Ino != two.Ino {
		t.Errorf("two names of a file are of two files: %v", err)
	}
	if err := unix.Stat(filepath.Join(to, "holes"), &st); err != nil || st.Blocks*512 > 1<<20 {
		t.Errorf("the holes of a file take %d bytes, %v", st.Blocks*512, err)
	}
	// The rights were those of one thread, which is gone.
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, "to", string(rune('a'+i))), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func TestCarryRefuses(t *testing.T) {
	dir, c := carriage(t, `mkdir -p tree/sub closed/in taken; echo x >tree/sub/f; ln -s tree way; ln -s .. tree/up
echo secret >closed/in/f; chmod 0 closed/in/f; mkdir -p "deep/$(printf 'd/%.0s' $(seq 110))"`)
	to := filepath.Join(dir, "to")
	if err := os.Symlink(filepath.Join(dir, "from"), filepath.Join(to, "way")); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(dir, "from")
	full := errors.New("full")
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(full)
	stingy := c
	stingy.More = func(spent int64) (int64, error) {
		if spent > 10_000 {
			return 0, full
		}
		return spent, nil
	}
	root := c
	root.UID = 0
	for name, try := range map[string]struct {
		c        FolderCopier
		ctx      context.Context
		from, to Place
		want     error
	}{
		"a link on the way":      {c, t.Context(), Place{from, "way/sub"}, Place{to, ""}, unix.ENOTDIR},
		"a link at the end":      {c, t.Context(), Place{from, "way"}, Place{to, ""}, unix.ENOTDIR},
		"the way up":             {c, t.Context(), Place{from, "tree/../tree"}, Place{to, ""}, unix.EXDEV},
		"a link into which":      {c, t.Context(), Place{from, "tree"}, Place{to, "way"}, unix.ENOTDIR},
		"nothing":                {c, t.Context(), Place{from, "none"}, Place{to, ""}, fs.ErrNotExist},
		"a file":                 {c, t.Context(), Place{from, "tree/sub/f"}, Place{to, ""}, unix.ENOTDIR},
		"what is closed to them": {c, t.Context(), Place{from, "closed"}, Place{to, ""}, fs.ErrPermission},
		"a name that is taken":   {c, t.Context(), Place{from, "tree"}, Place{from, "taken/.."}, unix.EXDEV},
		"too deep":               {c, t.Context(), Place{from, "deep"}, Place{to, ""}, ErrUnsupported},
		"more than there may be": {stingy, t.Context(), Place{from, "tree"}, Place{to, ""}, full},
		"a caller that has gone": {c, gone, Place{from, "tree"}, Place{to, ""}, full},
	} {
		if err := os.RemoveAll(filepath.Join(to, "copy")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := try.c.Copy(try.ctx, try.from, try.to, "copy"); !errors.Is(err, try.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := root.Copy(t.Context(), Place{from, "tree"}, Place{to, ""}, "copy"); err == nil {
		t.Error("root carries")
	}
	if err := os.RemoveAll(filepath.Join(to, "copy")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Copy(t.Context(), Place{from, "tree"}, Place{to, ""}, "copy"); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Copy(t.Context(), Place{from, "tree"}, Place{to, ""}, "copy"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto what is there: %v", err)
	}
}

// A program moves the folders about while they are copied.
func TestCopyIsNotLedAway(t *testing.T) {
	dir, c := carriage(t, `mkdir -p tree/a/b tree/c; echo mine >tree/a/b/f; echo mine >tree/c/f; mkdir other; ln -s ../../secret other/b; ln -s ../../../secret/f other/f`)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "secret"), 0o755), os.WriteFile(filepath.Join(dir, "secret/f"), []byte("secret"), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	over := make(chan struct{})
	var swaps sync.WaitGroup
	for _, names := range [][2]string{{"tree/a/b", "other/b"}, {"tree/c/f", "other/f"}} {
		swaps.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(from, names[0]), unix.AT_FDCWD, filepath.Join(from, names[1]), unix.RENAME_EXCHANGE)
				}
			}
		})
	}
	links := 0
	for n := 0; n < 100 || links == 0 && n < 10_000; n++ { // on a busy machine nothing may be exchanged for a while
		if err := os.RemoveAll(filepath.Join(to, "copy")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Copy(t.Context(), Place{from, "tree"}, Place{to, ""}, "copy"); err != nil && !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
		_ = filepath.WalkDir(filepath.Join(to, "copy"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.Type() == fs.ModeSymlink {
				links++
			}
			if data, _ := os.ReadFile(path); e.Type().IsRegular() && string(data) != "mine\n" {
				t.Fatalf("%s has %q", path, data)
			}
			return nil
		})
	}
	close(over)
	swaps.Wait()
	if links == 0 {
		t.Error("nothing was ever exchanged")
	}
}
