package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// stageDir is covered, in the stage's mount namespace, by a folder that is not
// on the host: one that every machine has, that anyone may pass through (an OCI
// runtime walks to the root folder as the sandbox's uid 0, who has no rights on the
// host), and that no OCI runtime needs.
const stageDir = "/dev/shm"

// stage is the mount namespace that sandboxes' own are copied from. Images are
// mounted in it once. It lives as long as its descriptor: a Runtime that is
// killed leaves no mount behind, and sandboxes hold on to what they use.
type stage struct {
	ns *os.File

	mu     sync.Mutex             // held while in the stage's namespace itself
	images map[string]*imageMount // guarded by mu; by path
	next   int                    // guarded by mu; number of the next mount
}

// imageMount is an image that is mounted in the stage.
type imageMount struct {
	dir    string
	device uint64
	inode  uint64
	mtime  unix.Timespec
}

// openStage makes the namespace. hideCgroups covers the control groups in it.
func openStage(hideCgroups bool) (*stage, error) {
	s := &stage{images: map[string]*imageMount{}}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make a mount namespace: %w", err)
		}
		// What the host unmounts goes here too; nothing goes the other way.
		if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("make mounts private: %w", err)
		}
		if hideCgroups {
			if err := tmpfs(cgroupRoot, "size=4k,nr_inodes=1,mode=755", unix.MS_RDONLY); err != nil {
				return err
			}
		}
		if err := tmpfs(stageDir, "size=1m,mode=755", 0); err != nil {
			return err
		}
		for _, dir := range []string{boxDir, imagesDir} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
		}
		s.ns, err = os.Open("/proc/thread-self/ns/mnt")
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// close lets go of the namespace.
func (s *stage) close() error { return s.ns.Close() }

var imagesDir = filepath.Join(stageDir, "images")

// run calls f on a thread with a mount namespace of its own, a copy of the
// stage's. What f mounts is gone with the processes that f starts.
func (s *stage) run(f func() error) error {
	return onThread(func() error {
		if _, err := s.enter(); err != nil {
			return err
		}
		return f()
	})
}

// enter puts this thread into a copy of the stage's namespace, in which images
// are mounted on the folders it returns. It is for threads of onThread.
func (s *stage) enter(images ...string) (dirs []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // setns asks for it
		return nil, fmt.Errorf("leave the process's root: %w", err)
	}
	if err := unix.Setns(int(s.ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("enter the stage: %w", err)
	}
	for _, image := range images {
		dir, err := s.mountImage(image)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("copy the stage: %w", err)
	}
	return dirs, nil
}

// mountImage returns where an image is mounted, after mounting it if needed.
// s.mu is held, and the thread is in the stage's namespace.
func (s *stage) mountImage(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("image %s: %w", path, err)
	}
	old := s.images[path]
	if old != nil && old.device == st.Dev && old.inode == st.Ino && old.mtime == st.Mtim {
		return old.dir, nil
	}
	s.next++
	m := &imageMount{dir: filepath.Join(imagesDir, strconv.Itoa(s.next)), device: st.Dev, inode: st.Ino, mtime: st.Mtim}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		return "", err
	}
	if err := mountEROFS(path, m.dir); err != nil {
		os.Remove(m.dir)
		return "", err
	}
	s.images[path] = m
	if old != nil { // it was replaced by another file
		if err := unmount(old, path); err != nil {
			return "", err
		}
	}
	return m.dir, nil
}

// unmount unmounts an image in the stage. Sandboxes that use it keep it.
func unmount(m *imageMount, path string) error {
	if err := unix.Unmount(m.dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the image that was at %s: %w", path, err)
	}
	os.Remove(m.dir)
	return nil
}

// forget unmounts the image at a path, if it is mounted.
func (s *stage) forget(path string) error {
	return onThread(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		m := s.images[path]
		if m == nil {
			return nil
		}
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // setns asks for it
			return fmt.Errorf("leave the process's root: %w", err)
		}
		if err := unix.Setns(int(s.ns.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter the stage: %w", err)
		}
		if err := unmount(m, path); err != nil {
			return err
		}
		delete(s.images, path)
		return nil
	})
}

// onThread calls f on an operating system thread that ends afterwards, so that
// f may change what belongs to the thread: its namespaces, its folder.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot end. While this goroutine holds it, another
			// one cannot get it.
			defer runtime.UnlockOSThread()
			result <- onThread(f)
			return
		}
		result <- f() // not unlocked: the thread ends with the goroutine
	}()
	return <-result
}
