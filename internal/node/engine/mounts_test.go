package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/volumes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// volumes are volumes below a folder that only root may enter.
func volumes(t *testing.T) volume.Store {
	t.Helper()
	who, err := idmap.Find()
	if err != nil {
		t.Fatal(err)
	}
	return volume.Store{Dir: filepath.Join(t.TempDir(), "volumes"), Owners: who}
}

// python is a job of a tenant that mounts something.
func python(tenant, code string, mounts ...storage.Mount) *execution.Job {
	return job(func(j *execution.Job) {
		j.Tenant, j.Language, j.Code, j.Mounts = tenant, execution.Python, code, mounts
	})
}

func mountOf(slug string, p storage.Path) storage.Mount {
	return storage.Mount{Slug: slug, Connection: "con_" + slug, Kind: storage.Volume, Path: p}
}

// mounted counts the mounts below a folder.
func mounted(t *testing.T, below string) (n int) {
	t.Helper()
	all, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if f := strings.Fields(line); strings.HasPrefix(f[4], below+"/") {
			n++
		}
	}
	return n
}

func TestAVolumeIsMounted(t *testing.T) {
	dir, store := folder(t), volumes(t)
	e := start(t, dir, func(c *Config) { c.Volumes = store })
	say := func(j *execution.Job, want string) {
		t.Helper()
		if out, _ := run(t, e, j); out != want {
			t.Errorf("printed %q, want %q", out, want)
		}
	}
	say(python("ten_a", `import os; os.makedirs("/data/team/reports/q1/x"); open("/data/team/reports/q1/x/f","w").write("kept"); os.symlink("/etc/passwd","/data/team/link"); os.symlink("../..","/data/team/up"); open("/data/team/secret","w").write("s")
print(sorted(os.listdir("/data/team")), os.stat("/data/team/secret").st_uid)`, mountOf("team", "")), "['link', 'reports', 'secret', 'up'] 1000\n")
	// Another sandbox sees exactly what it is given, as the root of the mount.
	see := `import os
print(sorted(os.listdir("/data/team")), open("/data/team/x/f").read())
for p in ["/data/team/../secret", "/data/team/../../secret", "/data/team/x/../../secret"]:
    print(os.path.exists(p), end=" ")`
	say(python("ten_a", see, mountOf("team", "reports/q1")), "['x'] kept\nFalse False False ")
	// The same connection of another tenant is another volume.
	say(python("ten_b", `import os; print(os.listdir("/data/team"))`, mountOf("team", "")), "[]\n")
	// Links lead where they lead inside the sandbox, and no further.
	say(python("ten_a", `import os; print("root:x:0" in open("/data/team/link").read(), sorted(os.listdir("/data/team/up"))==sorted(os.listdir("/")), open("/data/team/link").read()==open("/etc/passwd").read())`,
		mountOf("team", "")), "True True True\n")
	fixed := mountOf("team", "")
	fixed.ReadOnly = true
	say(python("ten_a", `import os
for do in [lambda: open("/data/team/new","w"), lambda: os.mkdir("/data/team/d"), lambda: os.remove("/data/team/secret"), lambda: os.chmod("/data/team/secret",0), lambda: open("/data/team/secret","a")]:
    try: do(); print("done")
    except OSError as e: print(e.errno, end=" ")
print(open("/data/team/secret").read())`, fixed), "30 30 30 30 30 s\n")
	say(python("ten_a", `print(open("/data/team/x/f").read(), open("/data/other/x","w").write("123"))`, mountOf("other", "new/made"), mountOf("team", "reports/q1")), "kept 3\n")
	if b, err := os.ReadFile(filepath.Join(store.Dir, "ten_a", "con_other", "new", "made", "x")); err != nil || string(b) != "123" {
		t.Errorf("on the host: %q, %v", b, err)
	}
	for path, says := range map[storage.Path]string{"link": "not a folder", "up": "not a folder", "up/x": "link", "reports/nowhere": "has no folder", "secret": "not a folder", "secret/x": "not a folder"} {
		m := fixed
		m.Path = path
		if _, _, err := e.Claim(t.Context(), python("ten_a", "", m)); fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n := mounted(t, filepath.Join(dir, "state")); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "state", Server, mountsDir)); err != nil || len(left) != 0 {
		t.Errorf("folders are left: %v, %v", left, err)
	}
}

// A sandbox of the pool has nothing of any tenant until it is claimed, and then what
// the job mounts.
func TestAVolumeIsMountedInAReadySandbox(t *testing.T) {
	dir, store := folder(t), volumes(t)
	e := start(t, dir, func(c *Config) { c.Volumes, c.PoolSize = store, 1 })
	env, _, err := e.use(python("ten_a", ""))
	if err != nil {
		t.Fatal(err)
	}
	key := env.maker.Key(execution.Python, "", false, true)
	e.unuse(env)
	e.pool.Expect(key, 1, 1)
	ready := func(j *execution.Job, want string) {
		t.Helper()
		atolltest.Until(t, time.Minute, "a sandbox is ready", func() bool {
			e.metrics.mu.Lock()
			defer e.metrics.mu.Unlock()
			return e.metrics.sizes[key].idle > 0
		})
		c, reason, err := e.Claim(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if reason.Start() != execution.StartWarm {
			t.Errorf("it started %s: %s", reason.Start(), reason)
		}
		if got := finish(t, c, j); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
	ready(python("ten_a", `import os; os.makedirs("/data/team/reports/q1"); open("/data/team/reports/q1/f","w").write("kept"); open("/data/team/s","w").write("s")
print(os.listdir("/data"), sorted(os.listdir("/data/team")), os.stat("/data/team/s").st_uid)`, mountOf("team", "")), "['team'] ['reports', 's'] 1000\n")
	ready(python("ten_b", `import os
for do in [lambda: open("/data/new","w"), lambda: os.rmdir("/data/team"), lambda: os.mkdir("/data/other"), lambda: open("/data/team/x","w").close()]:
    try: do(); print("done", end=" ")
    except OSError as e: print(e.errno, end=" ")
print(os.listdir("/data"), os.listdir("/data/team"))`, mountOf("team", "")), "13 13 13 done ['team'] ['x']\n")
	fixed := mountOf("team", "reports")
	fixed.ReadOnly = true
	ready(python("ten_a", `import os
for do in [lambda: open("/data/team/new","w"), lambda: os.mkdir("/data/team/d"), lambda: os.remove("/data/team/q1/f"), lambda: os.chmod("/data/team/q1/f",0), lambda: open("/data/team/q1/f","a")]:
    try: do(); print("done")
    except OSError as e: print(e.errno, end=" ")
print(open("/data/team/q1/f").read(), os.listdir("/data/team"), os.path.exists("/data/team/../s"), open("/data/more/x","w").write("123"))`, fixed, mountOf("more", "a/b")),
		"30 30 30 30 30 kept ['q1'] False 3\n")
	if _, _, err := e.Claim(t.Context(), python("ten_a", "", mountOf("team", "s"))); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a file as a folder: %v", err)
	}
	if n := mounted(t, filepath.Join(dir, "state")); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "state", Server, "storage", "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("folders are left: %v, %v", left, err)
	}
}

// A rule on a folder above a volume holds for what is in the volume.
func TestRulesHoldInVolumes(t *testing.T) {
	store := volumes(t)
	e := start(t, folder(t), func(c *Config) { c.Volumes = store })
	run(t, e, python("ten_a", `import os; os.makedirs("/data/team/secret"); open("/data/team/secret/f", "w"); open("/data/team/f", "w").write("kept")`, mountOf("team", "")))
	j := python("ten_a", `import os
for do in [lambda: open("/data/team/new","w"), lambda: os.remove("/data/team/f"), lambda: os.listdir("/data/team/secret")]:
    try: print("done", do())
    except OSError as e: print(e.errno, end=" ")
print(sorted(os.listdir("/data/team")), open("/data/team/f").read())`, mountOf("team", ""))
	j.Permissions.Filesystem = runtime.FilesystemPolicy{ReadOnly: []string{"/data"}, Blocked: []string{"/data/team/secret"}}
	if out, _ := run(t, e, j); out != "30 30 13 ['f', 'secret'] kept\n" {
		t.Errorf("printed %q", out)
	}
	j.Permissions.Process.NoExec = true
	j.Code = `import os
try: os.fork()
except OSError as e: print(e.errno)`
	if out, _ := run(t, e, j); out != "1\n" {
		t.Errorf("without exec it printed %q", out)
	}
}

// A program that makes a link of the folder that the next one is to see gains
// nothing by it.
func TestALinkInAVolumeIsNotFollowed(t *testing.T) {
	store := volumes(t)
	e := start(t, folder(t), func(c *Config) { c.Volumes = store })
	run(t, e, python("ten_a", `import os; os.symlink("/", "/data/team/q1"); os.symlink("../con_other", "/data/team/q2"); os.symlink("/proc/self/root", "/data/team/q3")`, mountOf("team", "")))
	for _, p := range []storage.Path{"q1", "q1/etc", "q2", "q2/x", "q3", "q3/etc"} {
		if _, _, err := e.Claim(t.Context(), python("ten_a", "", mountOf("team", p))); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestAVolumeHoldsALargeFile(t *testing.T) {
	store := volumes(t)
	e := start(t, folder(t), func(c *Config) { c.Volumes = store })
	out, _ := run(t, e, python("ten_a", `import hashlib, os
h = hashlib.sha256()
with open("/data/team/big", "wb") as f:
    for i in range(100):
        b = os.urandom(1 << 20); h.update(b); f.write(b)
print(h.hexdigest())`, mountOf("team", "")))
	data, err := os.ReadFile(filepath.Join(store.Dir, "ten_a", "con_team", "big"))
	if err != nil || len(data) != 100<<20 || fmt.Sprintf("%x\n", sha256.Sum256(data)) != out {
		t.Fatalf("the host has %d bytes, %v", len(data), err)
	}
	again, _ := run(t, e, python("ten_a", `import hashlib; print(hashlib.file_digest(open("/data/team/big","rb"),"sha256").hexdigest())`, mountOf("team", "")))
	if again != out {
		t.Errorf("read back as %s, written as %s", again, out)
	}
}

// What a process that was killed has mounted goes at the next start, but for the
// mounts of a run that can be taken over.
func TestSweepUnmounts(t *testing.T) {
	dir, store := folder(t), volumes(t)
	with := func(c *Config) { c.Volumes = store }
	e := open(t, dir, with)
	folders := abandon(t, e, python("ten_a", "", mountOf("team", "")))
	if n := mounted(t, filepath.Join(dir, "state")); n != 2 {
		t.Fatalf("%d mounts were let go of", n)
	}
	next := start(t, dir, with)
	if n := mounted(t, filepath.Join(dir, "state")); n != 1 {
		t.Errorf("%d mounts are there after the sweep", n)
	}
	c, err := next.Open(t.Context(), folders[0], python("ten_a", "", mountOf("team", "")))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(t.Context(), execution.Program{ID: 1, Language: execution.Python, Code: `open("/data/team/f","w").write("later")`, Timeout: time.Minute, MaxBytes: 1000},
		func(execution.Stream, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Destroy(context.Background()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(store.Dir, "ten_a", "con_team", "f")); err != nil || string(b) != "later" {
		t.Errorf("after the take-over: %q, %v", b, err)
	}
	if n := mounted(t, filepath.Join(dir, "state")); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
	if _, err := os.Stat(filepath.Join(store.Dir, "ten_a", "con_team")); err != nil {
		t.Error("the volume is gone:", err)
	}
}

func TestWhatCannotBeMountedIsRefused(t *testing.T) {
	e := start(t, folder(t), nil)
	bucket := mountOf("b", "")
	bucket.Kind = storage.S3
	for _, m := range []storage.Mount{mountOf("team", ""), bucket} {
		if _, _, err := e.Claim(t.Context(), python("ten_a", "", m)); fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), "cannot mount connections") {
			t.Errorf("%s: %v", m.Kind, err)
		}
	}
}
