package sandboxes_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// use uses a sandbox until the test ends.
func (m *machine) use(p *tenant.Principal, name string) sandbox.Handle {
	m.t.Helper()
	h, err := m.Use(m.t.Context(), p, "s", name)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(h.Close)
	return h
}

// hesitant is an engine whose copies wait before they are refused, until the files of
// both sandboxes were looked at twice while a copy of the largest size is there.
type hesitant struct {
	sandboxes.Engine
	looks chan struct{} // receives at every look at a sandbox's files
}

func (e hesitant) FolderCopier(more func(spent int64) (int64, error)) (disk.FolderCopier, error) {
	return e.Engine.FolderCopier(func(spent int64) (int64, error) {
		most, err := more(spent)
		if fault.KindOf(err) == fault.Exhausted {
			for range 5 { // one may have begun before
				<-e.looks
			}
		}
		return most, err
	})
}

func TestCopyFolder(t *testing.T) {
	t.Parallel()
	var short atomic.Bool
	m := start(t, func(c *sandboxes.Config) {
		looks := make(chan struct{})
		c.DiskLimit, c.Engine = 48<<20, hesitant{c.Engine, looks}
		c.AdmitDisk = func() error {
			select {
			case looks <- struct{}{}:
			default: // nothing waits for it
			}
			if short.Load() {
				return fault.New(fault.Unavailable, "short of disk")
			}
			return nil
		}
	})
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.ensure(p, "s", "y", nil)
	from, to := m.use(p, "x"), m.use(p, "y")
	const look = `find . -printf '%P %y %m %U %s %l %n ' -type f -exec sha256sum {} + -o -printf '\n' | sort`

	t.Run("all of it", func(t *testing.T) {
		// Some of it the kernel of the sandbox has just been told, and not the host.
		m.shell(p, "s", "x", `mkdir -p tree/sub/empty && cd tree && for i in $(seq 300); do echo $i > sub/$i; done && ln sub/7 seven && ln -s sub/8 eight && ln -s /etc/passwd out
touch -d 2001-02-03 sub/9 && chmod 4710 sub/10 && chmod 555 sub/empty && truncate -s 30M holes
python3 - <<'END'
import mmap, os
f = open("mapped", "wb+"); f.truncate(8192)
m = mmap.mmap(f.fileno(), 8192); m[:5] = b"there"
g = open("kept", "w"); g.write("x" * 5); g.flush()
os.rename("sub/11", "sub/eleven"); os.remove("sub/12")
os._exit(0)
END`)
		m.shell(p, "s", "y", "ls -a; mkdir there; ls there; ! stat there/copy there/copy/sub/1")
		bytes, done, err := from.CopyFolder(t.Context(), runtime.Home+"/tree", to, "there/copy")
		if !done || err != nil {
			t.Fatalf("%v, %v", done, err)
		}
		if want := m.shell(p, "s", "x", `cd tree && find . -type f -printf '%i %s\n' | sort -u | awk '{n += $2} END {print n}'`); want != strconv.FormatInt(bytes, 10) {
			t.Errorf("%d bytes, not %s", bytes, want)
		}
		a, b := m.shell(p, "s", "x", "cd tree; "+look), m.shell(p, "s", "y", "cd there/copy; "+look)
		if a != b || strings.Count(a, "\n") < 10 {
			t.Errorf("it is\n%s\nof\n%s", b, a)
		}
		if got := m.shell(p, "s", "y", "date -r there/copy/sub/9 +%F; ls -A . there there/copy/sub/empty; head -c 5 there/copy/mapped; chmod 755 there/copy/sub/empty; rm -r there; ls -A"); !strings.HasPrefix(got, "2001-02-03\n.:\n") ||
			strings.Contains(got, ".atoll-") || !strings.Contains(got, "there:\ncopy\n") || strings.Contains(got, "there\nthere") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("not by the host", func(t *testing.T) {
		m.shell(p, "s", "x", "mkdir -p piped/in && mkfifo piped/in/pipe; ln -s tree way; mkdir shut && echo x >shut/f && chmod 0 shut/f")
		m.shell(p, "s", "y", "mkdir -p taken closed && chmod 555 closed")
		for _, try := range []struct{ from, to string }{
			{"/home/user/piped", "copy"}, {"/etc", "copy"}, {"/home/user/way", "copy"}, {"/home/user/shut", "copy"}, {"/home/user/tree", "taken"},
			{"/home/user/tree", "closed/copy"}, {"/home/user/nothing", "copy"}, {"/home/user/tree", "/dev/shm/copy"}, {"/home/user/tree/../tree", "copy"},
		} {
			if _, done, err := from.CopyFolder(t.Context(), try.from, to, try.to); done || err != nil {
				t.Errorf("%s to %s: %v, %v", try.from, try.to, done, err)
			}
		}
		ruled := m.caller("a", func(p *tenant.Principal) {
			p.Environment.Permissions.Filesystem = runtime.FilesystemPolicy{Blocked: []string{runtime.Home + "/tree/sub"}}
		})
		m.ensure(ruled, "s", "ruled", nil)
		bound := m.use(ruled, "ruled")
		if _, done, err := from.CopyFolder(t.Context(), runtime.Home+"/tree", bound, "copy"); done || err != nil {
			t.Errorf("into one that has rules: %v, %v", done, err)
		}
		if _, done, err := bound.CopyFolder(t.Context(), runtime.Home, to, "copy"); done || err != nil {
			t.Errorf("out of one that has rules: %v, %v", done, err)
		}
		if got := m.shell(p, "s", "y", "ls -A; ls -A taken closed /dev/shm"); got != "closed\ntaken\n/dev/shm:\n\nclosed:\n\ntaken:" {
			t.Errorf("there is left: %q", got)
		}
	})
	t.Run("within bounds", func(t *testing.T) {
		m.shell(p, "s", "x", "rm -rf tree; mkdir large; for i in $(seq 10); do head -c 3000000 /dev/zero >large/$i; done")
		m.shell(p, "s", "y", "head -c 25000000 /dev/zero >mine")
		_, done, err := from.CopyFolder(t.Context(), runtime.Home+"/large", to, "large")
		refused(t, "more than there may be", err, fault.Exhausted, "48 MiB of disk")
		if done || to.Stopped(t.Context()) != nil {
			t.Errorf("done %v, its programs ended: %v", done, to.Stopped(t.Context()))
		}
		short.Store(true)
		_, _, err = from.CopyFolder(t.Context(), runtime.Home+"/large", to, "large")
		refused(t, "on a full disk", err, fault.Unavailable, "short of disk")
		short.Store(false)
		no := errors.New("no")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(no)
		if _, _, err := from.CopyFolder(ctx, runtime.Home+"/large", to, "large"); !errors.Is(err, no) && !errors.Is(err, context.Canceled) {
			t.Errorf("for a caller that has gone: %v", err)
		}
		if got := m.shell(p, "s", "y", "ls -A"); got != "closed\nmine\ntaken" {
			t.Errorf("there is left: %q", got)
		}
		m.shell(p, "s", "y", "rm mine")
		if bytes, done, err := from.CopyFolder(t.Context(), runtime.Home+"/large", to, "/var/tmp/large"); !done || err != nil || bytes != 30_000_000 {
			t.Errorf("%d bytes, %v, %v", bytes, done, err)
		}
	})
}
