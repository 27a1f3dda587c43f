package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/test/atolltest"
)

func writeImage(t *testing.T, path, content string) {
	t.Helper()
	if err := erofs.WriteFiles(path, map[string]erofs.File{"content": {Mode: 0o644, Data: []byte(content)}}); err != nil {
		t.Fatal(err)
	}
}

func openTestStage(t *testing.T) *stage {
	t.Helper()
	s, err := openStage(true)
	if err != nil {
		t.Fatalf("%v (the test must run as root)", err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// content reads a file of an image as the stage's sandboxes see it.
func content(t *testing.T, s *stage, image string) string {
	t.Helper()
	var data []byte
	err := onThread(func() error {
		dirs, err := s.enter(image)
		if err != nil {
			return err
		}
		data, err = os.ReadFile(filepath.Join(dirs[0], "content"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAnImageIsMountedOnceAndAnewWhenReplaced(t *testing.T) {
	s := openTestStage(t)
	path := filepath.Join(t.TempDir(), "image.erofs")
	writeImage(t, path, "first")
	for range 3 {
		if got := content(t, s, path); got != "first" {
			t.Errorf("the image holds %q", got)
		}
	}
	if s.next != 1 {
		t.Errorf("one image was mounted %d times", s.next)
	}
	writeImage(t, path, "second")
	if got := content(t, s, path); got != "second" {
		t.Errorf("the image holds %q after it was replaced", got)
	}
	if len(s.images) != 1 {
		t.Errorf("%d images are mounted", len(s.images))
	}
}

func TestNothingIsMountedOnTheHost(t *testing.T) {
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	s := openTestStage(t)
	path := filepath.Join(t.TempDir(), "image.erofs")
	writeImage(t, path, "x")
	content(t, s, path)
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(after)) {
		if !strings.Contains(string(before), line) && (strings.Contains(line, stageDir) || strings.Contains(line, path)) {
			t.Errorf("mounted: %s", line)
		}
	}
}

// TestALoopDeviceGoesWithItsMount is for kernels that cannot mount a file.
func TestALoopDeviceGoesWithItsMount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.erofs")
	writeImage(t, path, "looped")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	dir := t.TempDir()
	var name, data string
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
			return err
		}
		device, err := attachLoop(file)
		if err != nil {
			return err
		}
		defer device.Close()
		name = device.Name()
		if err := unix.Mount(name, dir, "erofs", unix.MS_RDONLY, ""); err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, "content"))
		data = string(b)
		return err
	})
	if err != nil || data != "looped" {
		t.Fatalf("%q, %v", data, err)
	}
	backing := filepath.Join("/sys/block", filepath.Base(name), "loop", "backing_file")
	atolltest.Until(t, time.Minute, name+" is not attached any more", func() bool {
		of, err := os.ReadFile(backing)
		return err != nil || strings.TrimSpace(string(of)) != path
	})
}

// TestTheProcessKeepsItsNamespace: whatever thread happens to be asked.
func TestTheProcessKeepsItsNamespace(t *testing.T) {
	namespaces := func() (names []string) {
		threads, err := filepath.Glob("/proc/self/task/*/ns/mnt")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range threads {
			if name, err := os.Readlink(path); err == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
	before := namespaces()
	for range 100 {
		if err := onThread(func() error { return unix.Unshare(unix.CLONE_NEWNS) }); err != nil {
			t.Fatal(err)
		}
	}
	atolltest.Until(t, time.Minute, fmt.Sprintf("all threads are in %v", before), func() bool { return slices.Equal(namespaces(), before) })
}

func TestFoldersBelowTheStageAreRefused(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(stageDir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{stageDir, stageDir + "/data", stageDir + "/../shm/data", link} {
		if got, err := hostPath(path); err == nil {
			t.Errorf("%s is taken for %s", path, got)
		}
	}
	for _, path := range []string{"/", "/dev", "/dev/shmx", t.TempDir()} {
		if _, err := hostPath(path); err != nil {
			t.Error(err)
		}
	}
}

func TestAForgottenImageIsUnmounted(t *testing.T) {
	s := openTestStage(t)
	path := filepath.Join(t.TempDir(), "image.erofs")
	writeImage(t, path, "first")
	if got := content(t, s, path); got != "first" {
		t.Errorf("the image holds %q", got)
	}
	mounted := s.images[path].dir
	if err := s.forget(path); err != nil {
		t.Fatal(err)
	}
	if err := s.run(func() error { _, err := os.Stat(mounted); return err }); !os.IsNotExist(err) || len(s.images) != 0 {
		t.Errorf("it is still mounted at %s: %v", mounted, err)
	}
	if err := s.forget(path); err != nil {
		t.Errorf("forget it again: %v", err)
	}
	if got := content(t, s, path); got != "first" {
		t.Errorf("used again, the image holds %q", got)
	}
}
