package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/node/volumes/bucket"
	"github.com/atoll-run/atoll/test/atolltest"
)

func withBuckets(t *testing.T, cache int64) func(*Config) {
	t.Helper()
	store := volumes(t)
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) {
		c.Volumes = store
		c.Buckets = Buckets{Buckets: bucket.Buckets{Allow: allow}, Owners: store.Owners, Cache: cache}
	}
}

func bucketOf(s *atolltest.S3Server, p storage.Path) storage.Mount {
	return storage.Mount{Slug: "team", Connection: "con_b", Kind: storage.S3, Path: p, Target: storage.Target{
		Bucket: "bucket", Endpoint: s.Endpoint, PathStyle: true, Credentials: storage.Credentials{AccessKeyID: atolltest.S3AccessKey, SecretAccessKey: atolltest.S3SecretKey},
	}}
}

// flushed runs a job as executors do, and returns what it printed and what could
// not be stored.
func flushed(t *testing.T, e *Engine, j *execution.Job) (string, error) {
	t.Helper()
	c, _, err := e.Claim(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var b strings.Builder
	if _, err := c.Run(t.Context(), execution.Program{ID: 1, Language: j.Language, Code: j.Code, Timeout: 2 * time.Minute, MaxBytes: 4000},
		func(_ execution.Stream, p []byte) { b.Write(p) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return b.String(), c.(claimed).Flush(ctx)
}

// TestABucketInAnotherNamespace: a namespace that is made while a bucket is mounted, and
// has a copy of the mount, does not keep the mount.
func TestABucketInAnotherNamespace(t *testing.T) {
	s3 := atolltest.StartS3(t)
	e := start(t, folder(t), withBuckets(t, 1<<30))
	c, _, err := e.Claim(t.Context(), python("ten_a", "print(1)", bucketOf(s3, "")))
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("unshare", "--mount", "--propagation", "private", "cat")
	hold, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer other.Wait() // it ends with its input
	defer hold.Close()
	atolltest.Until(t, time.Minute, "the other namespace has the mount", func() bool {
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", other.Process.Pid))
		ours, _ := os.Readlink("/proc/self/ns/mnt")
		theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", other.Process.Pid))
		return err == nil && ours != theirs && bytes.Contains(mounts, []byte("/team "))
	})
	if err := c.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABucketIsMounted(t *testing.T) {
	s3 := atolltest.StartS3(t)
	dir := folder(t)
	e := start(t, dir, withBuckets(t, 1<<30))
	say := func(m storage.Mount, code, want string) {
		t.Helper()
		if out, err := flushed(t, e, python("ten_a", code, m)); err != nil || out != want {
			t.Errorf("printed %q, %v; want %q", out, err, want)
		}
	}
	object := func(name string) string {
		b, err := os.ReadFile(filepath.Join(s3.Bucket, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	say(bucketOf(s3, ""), `import os
os.makedirs("/data/team/reports/q1/x")
open("/data/team/reports/q1/x/f", "w").write("kept")
kept_open = open("/data/team/secret", "w"); kept_open.write("still open"); kept_open.flush()
print(sorted(os.listdir("/data/team")), os.stat("/data/team/secret").st_uid, flush=True)
os._exit(0)`, "['reports', 'secret'] 1000\n")
	if got := object("reports/q1/x/f") + object("secret"); got != "keptstill open" {
		t.Errorf("the bucket has %q", got)
	}
	say(bucketOf(s3, "reports/q1"), `import os
print(os.listdir("/data/team"), open("/data/team/x/f").read(), [os.path.exists(p) for p in ("/data/team/../secret", "/data/team/secret", "/data/team/x/../../secret")])
open("/data/team/x/f", "a").write(" and more")
os.rename("/data/team/x/f", "/data/team/x/g")
open("/data/team/gone", "w").write("1"); os.remove("/data/team/gone"); os.mkdir("/data/team/e"); os.rmdir("/data/team/e")
print(sorted(os.listdir("/data/team")), os.listdir("/data/team/x"), open("/data/team/x/g").read())
import mmap
f = open("/data/team/m", "w+b"); f.truncate(4096); mm = mmap.mmap(f.fileno(), 4096); mm[:6] = b"mapped"; mm.flush()`,
		"['x'] kept [False, False, False]\n['x'] ['g'] kept and more\n")
	if got := object("reports/q1/x/g") + object("reports/q1/m")[:6]; got != "kept and moremapped" {
		t.Errorf("the bucket has %q", got)
	}
	fixed := bucketOf(s3, "")
	fixed.ReadOnly = true
	say(fixed, `import os
for do in [lambda: open("/data/team/new","w"), lambda: os.mkdir("/data/team/d"), lambda: os.remove("/data/team/secret"), lambda: open("/data/team/secret","a")]:
    try: do(); print("done")
    except OSError as e: print(e.errno, end=" ")
print(open("/data/team/secret").read())`, "30 30 30 30 still open\n")
	big := `import hashlib, os
h = hashlib.sha256()
with open("/data/team/big", "wb") as f:
    for i in range(100):
        b = os.urandom(1 << 20); h.update(b); f.write(b)
print(h.hexdigest())`
	out, err := flushed(t, e, python("ten_a", big, bucketOf(s3, "")))
	if sum := sha256.Sum256([]byte(object("big"))); err != nil || out != fmt.Sprintf("%x\n", sum) {
		t.Errorf("the bucket has another file: %v", err)
	}
	say(fixed, `import hashlib; print(hashlib.file_digest(open("/data/team/big","rb"),"sha256").hexdigest())`, out)
	if n := mounted(t, filepath.Join(dir, "state")); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
	if used := e.room.Used(); used != 0 {
		t.Errorf("%d bytes of the cache are still taken", used)
	}
}

func TestTheCacheHasABound(t *testing.T) {
	s3 := atolltest.StartS3(t)
	e := start(t, folder(t), withBuckets(t, 2<<20))
	out, err := flushed(t, e, python("ten_a", `
f = open("/data/team/big", "wb", buffering=0)
n = 0
try:
    while True: n += f.write(b"x" * 65536)
except OSError as e: print(e.errno, n <= 2 << 20, n >= 1 << 20)`, bucketOf(s3, "")))
	if out != "28 True True\n" || err != nil {
		t.Errorf("printed %q, %v", out, err)
	}
	if used := e.room.Used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

// The caller of a run is told what could not be stored, and other runs are not held up.
func TestABucketThatGoesAway(t *testing.T) {
	s3 := atolltest.StartS3(t)
	e := start(t, folder(t), withBuckets(t, 1<<30))
	c, _, err := e.Claim(t.Context(), python("ten_a", "", bucketOf(s3, "")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), execution.Program{ID: 1, Language: execution.Python, Timeout: time.Minute, MaxBytes: 1000,
		Code: `import os, subprocess
f = os.open("/data/team/lost", os.O_CREAT | os.O_WRONLY); os.write(f, b"1")
subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, pass_fds=[f]); os._exit(0)`},
		func(execution.Stream, []byte) {}); err != nil {
		t.Fatal(err)
	}
	if err := s3.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := c.(claimed).Flush(ctx); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), `"lost"`) {
		t.Errorf("the loss of a file is told as %v", err)
	}
	if err := c.Destroy(context.Background()); err != nil {
		t.Error(err)
	}
}

// A run with a bucket is not taken over, and its mount, whose server died, goes;
// also where the bucket is the operator's, with the volumes.
func TestADeadBucketIsSwept(t *testing.T) {
	s3 := atolltest.StartS3(t)
	with := withBuckets(t, 1<<30)
	t.Run("connection", func(t *testing.T) { deadBucketIsSwept(t, bucketOf(s3, ""), with) })
	t.Setenv("AWS_ACCESS_KEY_ID", atolltest.S3AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", atolltest.S3SecretKey)
	volumes, err := blob.OpenBucket(t.Context(), s3.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer volumes.Close()
	t.Run("volume", func(t *testing.T) {
		deadBucketIsSwept(t, mountOf("team", ""), func(c *Config) {
			with(c)
			c.Volumes, c.Buckets.Volumes = nil, volumes
		})
	})
}

func deadBucketIsSwept(t *testing.T, m storage.Mount, with func(*Config)) {
	dir := folder(t)
	e := open(t, dir, with)
	j := python("ten_a", "", m)
	if !e.Fragile(j) || e.Fragile(python("ten_a", "")) {
		t.Error("it is not known what ends with this process")
	}
	c, _, err := e.Claim(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Folder(), "journal"), []byte("j"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	next := start(t, dir, with)
	if _, err := next.Open(t.Context(), c.Folder(), j); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("it was taken over: %v", err)
	}
	if err := next.Remove(t.Context(), c.Folder()); err != nil {
		t.Error(err)
	}
	if n := mounted(t, filepath.Join(dir, "state")); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
	e.host.drop(c.(claimed).ID()) // the other end, which died with a real process
}

func TestReach(t *testing.T) {
	s3 := atolltest.StartS3(t)
	m := bucketOf(s3, "")
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		allow  outbound.List
		change func(*storage.Connection)
		says   string
	}{
		"as it should be":    {allow, func(*storage.Connection) {}, ""},
		"not allowed":        {outbound.List{}, func(*storage.Connection) {}, "https://"},
		"not allowed, https": {outbound.List{}, func(c *storage.Connection) { c.Endpoint = "https://127.0.0.1:1" }, "private"},
		"metadata":           {allow, func(c *storage.Connection) { c.Endpoint = "https://169.254.169.254" }, "private"},
		"no such bucket":     {allow, func(c *storage.Connection) { c.Bucket = "nowhere" }, "nowhere"},
		"another's secret":   {allow, func(c *storage.Connection) { c.SecretAccessKey = "wrong-secret" }, "credentials"},
		"nothing listens":    {allow, func(c *storage.Connection) { c.Endpoint = "http://127.0.0.1:1" }, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			con := storage.Connection{Slug: "x", Kind: storage.S3, Target: m.Target}
			c.change(&con)
			err := (&bucket.Buckets{Allow: c.allow}).Reach(t.Context(), &con)
			if (err == nil) != (c.says == "") || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "wrong-secret") {
				t.Error("the error holds the secret")
			}
		})
	}
}
