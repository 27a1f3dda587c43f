package bucket

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"gocloud.dev/blob/memblob"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/test/atolltest"
)

// bare is a Mount that no kernel knows.
func bare(t *testing.T) *Mount {
	b := memblob.OpenBucket(nil)
	t.Cleanup(func() { b.Close() })
	return &Mount{
		cfg: Config{Objects: &Objects{Bucket: b}, Cache: t.TempDir(), Room: &Room{Most: 1 << 20}, Log: slog.New(slog.DiscardHandler)},
		ctx: t.Context(), files: map[string]*file{},
	}
}

// A folder of many objects is listed page by page, each name once, also where a
// file and a folder have the same.
func TestListing(t *testing.T) {
	m := bare(t)
	want := []string{"open file"}
	for i := range 2500 {
		name := fmt.Sprintf("%04d", i)
		want = append(want, name+" file")
		if err := m.cfg.Objects.WriteAll(t.Context(), "p/"+name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"p/open", "p/a", "p/a!", "p/a!b/x", "p/a/x", "p/a/y", "p/ab/x", "p/d/", "p/d/x", "p/..", "p//x", "p/" + strings.Repeat("n", 256), "q"} {
		if err := m.cfg.Objects.WriteAll(t.Context(), key, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, "a file", "a! file", "a!b folder", "ab folder", "d folder")
	if _, no := m.open("p/open", 0, time.Now()); no != 0 {
		t.Fatal(no)
	}
	l := &listing{m: m, below: "p/"}
	if no := l.begin(); no != 0 {
		t.Fatal(no)
	}
	for range 2000 { // and back to the beginning
		l.Next()
	}
	if no := l.Seekdir(t.Context(), 0); no != 0 {
		t.Fatal(no)
	}
	var got []string
	for l.HasNext() {
		e, no := l.Next()
		if no != 0 {
			t.Fatal(no)
		}
		kind := "file"
		if e.Mode == syscall.S_IFDIR {
			kind = "folder"
		}
		got = append(got, e.Name+" "+kind)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed are %d names, among them %q", len(got), got[2500:])
	}
}

// A signal that comes to a thread that waits for an answer, as Go sends its own threads,
// cancels the request's context. What was asked for is done all the same.
func TestInterruptedRequests(t *testing.T) {
	m := bare(t)
	s3 := atolltest.StartS3(t)
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(t.Context(), storage.S3, storage.Target{
		Bucket: "bucket", Endpoint: s3.Endpoint, PathStyle: true,
		Credentials: storage.Credentials{AccessKeyID: atolltest.S3AccessKey, SecretAccessKey: atolltest.S3SecretKey},
	}, allow)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m.cfg.Objects = &Objects{Bucket: b}
	root := &node{m: m}
	fs.NewNodeFS(root, nil)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	var out fuse.EntryOut
	inode, h, _, no := root.Create(interrupted, "file", syscall.O_WRONLY, 0o600, &out)
	if no != 0 {
		t.Fatal(no)
	}
	root.AddChild("file", inode, true)
	if no := h.(*handle).Release(interrupted); no != 0 {
		t.Error("Release:", no)
	}
	for name, do := range map[string]func() syscall.Errno{
		"Lookup": func() syscall.Errno { _, no := root.Lookup(interrupted, "file", &out); return no },
		"Mkdir":  func() syscall.Errno { _, no := root.Mkdir(interrupted, "folder", 0o700, &out); return no },
		"Rename": func() syscall.Errno { return root.Rename(interrupted, "file", root, "other", 0) },
		"Unlink": func() syscall.Errno { return root.Unlink(interrupted, "file") },
		"Rmdir":  func() syscall.Errno { return root.Rmdir(interrupted, "folder") },
	} {
		for _, key := range []string{"file", "folder/"} {
			if err := m.cfg.Objects.WriteAll(t.Context(), key, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if name == "Mkdir" {
			if err := m.cfg.Objects.Delete(t.Context(), "folder/"); err != nil {
				t.Fatal(err)
			}
		}
		if no := do(); no != 0 {
			t.Errorf("%s: %v", name, no)
		}
	}
}

// What a file that is not stored takes of the disk is given back when another
// takes its place.
func TestForgottenFilesTakeNoRoom(t *testing.T) {
	m := bare(t)
	gone, stop := context.WithCancel(t.Context())
	stop()
	m.ctx = gone // nothing can be stored
	h, no := m.open("a", 0, time.Now())
	if no != 0 {
		t.Fatal(no)
	}
	if _, no := h.Write(t.Context(), make([]byte, 1000), 0); no != 0 {
		t.Fatal(no)
	}
	if no := h.Release(t.Context()); no == 0 || m.cfg.Room.Used() != 1000 {
		t.Fatalf("closing says %d, and %d bytes are taken", no, m.cfg.Room.Used())
	}
	if !m.forget("a") || m.cfg.Room.Used() != 0 || m.forget("a") {
		t.Errorf("%d bytes are still taken", m.cfg.Room.Used())
	}
}

// A program cannot have this process run out of descriptors.
func TestOpenFilesHaveABound(t *testing.T) {
	m := bare(t)
	var all []*handle
	for i := range maxFiles {
		h, no := m.open(fmt.Sprint(i), 0, time.Now())
		if no != 0 {
			t.Fatal(i, no)
		}
		all = append(all, h)
	}
	if _, no := m.open("one more", 0, time.Now()); no != syscall.ENFILE {
		t.Errorf("one more: %d", no)
	}
	if _, no := m.open("0", 0, time.Now()); no != 0 {
		t.Errorf("one that is open: %d", no)
	}
	if no := all[1].Release(t.Context()); no != 0 {
		t.Fatal(no)
	}
	if _, no := m.open("one more", 0, time.Now()); no != 0 {
		t.Errorf("after one was closed: %d", no)
	}
}
