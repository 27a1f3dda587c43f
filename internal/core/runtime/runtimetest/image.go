package runtimetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
)

// built are the files that are made once per test process. They go when their
// folder does: see Main.
var built struct {
	sync.Mutex
	dir  string
	done map[string]error
}

// Main runs a package's tests and removes what the suite has built for them:
// func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }.
func Main(m *testing.M) int {
	defer func() {
		if built.dir != "" {
			os.RemoveAll(built.dir)
		}
	}()
	return m.Run()
}

// builtVariable tells a copy of the test program where everything it needs has
// been built.
const builtVariable = "ATOLL_SANDBOXTEST_BUILT"

// build returns the path of something made at most once.
func build(t testing.TB, name string, fill func(path string) error) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if dir := os.Getenv(builtVariable); dir != "" {
		return filepath.Join(dir, name)
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "sandboxtest-")
		must(t, err)
		must(t, os.Chmod(dir, 0o755)) // kernels open files in it as the user nobody
		built.dir, built.done = dir, map[string]error{}
	}
	path := filepath.Join(built.dir, name)
	err, ok := built.done[name]
	if !ok {
		err = fill(path)
		built.done[name] = err
	}
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return path
}

// Probe is where the suite's program is in a sandbox.
const Probe = "/bin/probe"

// owned are the folders of the suite's root file system by who owns them.
var owned = map[string]int{
	"bin": 0, "dev": 0, "etc": 0, "home": 0, "home/user": runtime.UID, "proc": 0, "sys": 0, "tmp": 0, ".atoll": 0,
}

const passwd = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"

// probe builds the suite's program.
func probe(t testing.TB) string {
	t.Helper()
	root := repository(t)
	return build(t, "probe", func(path string) error {
		return goBuild(root, path, "./internal/core/runtime/runtimetest/probe")
	})
}

func goBuild(root, path, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Image returns a root file system of one EROFS file.
func Image(t testing.TB) runtime.Rootfs {
	t.Helper()
	program, err := os.ReadFile(probe(t))
	must(t, err)
	return runtime.Rootfs{Image: build(t, "rootfs.erofs", func(path string) error {
		return writeImage(t, path, program)
	})}
}

func writeImage(t testing.TB, path string, program []byte) error {
	root := erofs.NewDir(0o755)
	for dir, uid := range owned {
		n := erofs.NewDir(0o755)
		n.UID, n.GID = uint32(uid), uint32(uid)
		parent := root
		if up, name, ok := strings.Cut(dir, "/"); ok {
			if parent = root.Children[up]; parent == nil {
				parent = erofs.NewDir(0o755)
				root.Children[up] = parent
			}
			parent.Children[name] = n
		} else if have := root.Children[dir]; have == nil {
			parent.Children[dir] = n
		}
	}
	root.Children["tmp"].Mode |= 0o1777
	root.Children["bin"].Children["probe"] = erofs.NewFile(0o755, string(program))
	root.Children["etc"].Children["passwd"] = erofs.NewFile(0o644, passwd)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := erofs.Write(t.Context(), f, root); err != nil {
		return err
	}
	return f.Chmod(0o644)
}

// Tree returns a root file system of a folder with a bind: /bin is shown from
// another folder.
func Tree(t testing.TB) runtime.Rootfs {
	t.Helper()
	program, err := os.ReadFile(probe(t))
	must(t, err)
	dir := build(t, "tree", func(path string) error {
		for _, dir := range []string{"", "bin", "dev", "etc", "home", "home/user", "proc", "sys", "tmp", ".atoll"} {
			if err := os.Mkdir(filepath.Join(path, dir), 0o755); err != nil {
				return err
			}
			if uid := owned[dir]; uid != 0 && os.Geteuid() == 0 {
				if err := os.Chown(filepath.Join(path, dir), uid, uid); err != nil {
					return err
				}
			} else if uid != 0 {
				if err := os.Chmod(filepath.Join(path, dir), 0o777); err != nil {
					return err
				}
			}
		}
		if err := os.Chmod(filepath.Join(path, "tmp"), 0o777|os.ModeSticky); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "etc", "passwd"), []byte(passwd), 0o644)
	})
	bin := build(t, "bin", func(path string) error {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "probe"), program, 0o755)
	})
	return runtime.Rootfs{Tree: dir, Binds: []runtime.Bind{{Source: bin, Target: "/bin"}}}
}

// GuestImage returns an EROFS file with what is mounted at sandbox.GuestDir.
func GuestImage(t testing.TB) string {
	t.Helper()
	binary, err := os.ReadFile(Binary(t, "atoll-guest"))
	must(t, err)
	daemon, err := os.ReadFile(Binary(t, "atoll-guestd"))
	must(t, err)
	files := map[string]erofs.File{"guest": {Mode: 0o755, Data: binary}, "atoll-guestd": {Mode: 0o755, Data: daemon}}
	for name, data := range guest.Files() {
		files[name] = erofs.File{Mode: 0o644, Data: data}
	}
	return build(t, "guest.erofs", func(path string) error { return erofs.WriteFiles(path, files) })
}
