package sandboxes_test

import (
	"io"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// TestReadFile compares what is read on the host, or by the guest where that is not
// to be, with what the guest reads.
func TestReadFile(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	ruled := m.caller("a", func(p *tenant.Principal) {
		p.Environment.Permissions.Filesystem = runtime.FilesystemPolicy{Blocked: []string{runtime.Home + "/folder"}}
	})
	m.ensure(p, "s", "x", nil)
	m.ensure(ruled, "s", "ruled", nil)
	const prepare = `mkdir -p folder closed; printf 0123456789 >file; printf deep >folder/file; printf x >closed/file; printf x >shut; : >void; printf tmp >/tmp/file
ln -s file link; ln -s folder way; ln -s /etc/hostname out; ln -s nothing broken; mkfifo pipe; truncate -s 100 holes; printf odd >$'odd\377\n'; printf x >/dev/shm/file
python3 -c '
import mmap, os, time
f = open("mapped", "wb+"); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); m[:5] = b"there"
g = open("grows", "w"); g.write("first"); g.flush(); os.pwrite(g.fileno(), b"second", 5)
open("moves", "w").write("moved"); os.rename("moves", "moved"); os.truncate("holes", 7); open("ready", "w"); time.sleep(600)' >/dev/null 2>&1 &
until test -e ready; do sleep 0.05; done; chmod 0 shut; chmod 600 closed`
	for _, h := range []struct {
		who  *tenant.Principal
		name string
	}{{p, "x"}, {ruled, "ruled"}} {
		if h.who == p {
			m.shell(h.who, "s", h.name, prepare)
		} else {
			m.shell(h.who, "s", h.name, "printf 0123456789 >file")
		}
		use := m.use(h.who, h.name)
		read := 0
		for _, path := range []string{
			"file", "/home/user/file", "/home/user/./folder//file", "folder/file", "way/file", "link", "out", "broken", "void", "holes", "mapped", "grows", "moves", "moved", "odd\xff\n",
			"folder/../file", "../user/file", "/tmp/file", "/tmp/../etc/hostname", "/dev/shm/file", "/etc/passwd", "/proc/version", "/home/user", "folder", "file/", "file/.", "folder/", "pipe",
			"closed/file", "shut", "nothing", "", "/", "/home", "/tmp", "a\x00b", strings.Repeat("x", 300), "/var/tmp/../../home/user/file",
		} {
			for _, window := range []struct{ offset, limit int64 }{{0, 1 << 20}, {3, 2}, {1 << 40, 5}, {0, 0}, {-1, 5}} {
				got, size, err := use.ReadFile(t.Context(), path, window.offset, window.limit)
				info, body, e := use.Guest().Read(t.Context(), path, window.offset, window.limit)
				var want []byte
				if e == nil {
					want, e = io.ReadAll(body)
					body.Close()
				}
				if string(got) != string(want) || size != info.Size || (err == nil) != (e == nil) || err != nil && err.Error() != e.Error() {
					t.Errorf("%s: %q from %d: read %q of %d, %v, not %q of %d, %v", h.name, path, window.offset, got, size, err, want, info.Size, e)
				}
				if len(got) > 0 {
					read++
				}
			}
		}
		if read < 8 {
			t.Errorf("%s: read only %d times", h.name, read)
		}
	}
	// What is the host's is read without the guest, and nothing else is.
	use, bound := m.use(p, "x"), m.use(ruled, "ruled")
	for _, h := range []*sandboxes.Handle{use, bound} {
		if err := h.Guest().Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, size, err := use.ReadFile(t.Context(), "folder/file", 1, 2); string(got) != "ee" || size != 4 || err != nil {
		t.Errorf("without the guest: read %q of %d, %v", got, size, err)
	}
	for _, path := range []string{"link", "/etc/passwd"} {
		if got, _, err := use.ReadFile(t.Context(), path, 0, 10); err == nil {
			t.Errorf("%s was read without the guest: %q", path, got)
		}
	}
	if got, _, err := bound.ReadFile(t.Context(), "file", 0, 10); err == nil {
		t.Errorf("past the rules of an environment: read %q", got)
	}
}
