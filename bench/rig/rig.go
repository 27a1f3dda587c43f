// Package rig runs what the benchmarks compare: Atoll's server, the bare
// interpreters of its image, gVisor's own command, go-judge.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Rig is what all cases share. Close undoes all of it.
type Rig struct {
	Root  string // folder of the sources
	Bin   string // folder of the binaries that make build makes
	Image *Image
	Bare  string // the image's root, mounted by the machine's own kernel

	Stock string // gVisor's runsc, as its own project builds it; see BuildStock
	temp  string
	undo  []func() error
}

// New checks what the machine has and prepares the rest: it needs root, for
// mounting the image. images is a folder of images, name one of them.
func New(ctx context.Context, root, images, name string) (_ *Rig, err error) {
	r := &Rig{Root: root, Bin: filepath.Join(root, "bin")}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if os.Geteuid() != 0 {
		return nil, errors.New("the benchmarks mount the image for the bare interpreters and so must run as root: sudo make bench")
	}
	for _, b := range []string{"atoll", "atoll-guest", "atoll-guestd", "atoll-runsc", "gvisor-bin/gvisor_sentry"} {
		if _, err := os.Stat(filepath.Join(r.Bin, b)); err != nil {
			return nil, fmt.Errorf("bin/%s is missing; 'make build' makes it", b)
		}
	}
	if r.Image, err = openImage(filepath.Join(images, name)); err != nil {
		return nil, err
	}
	if r.temp, err = os.MkdirTemp("", "atoll-bench-"); err != nil {
		return nil, err
	}
	r.undo = append(r.undo, func() error { return os.RemoveAll(r.temp) })
	if r.Bare, err = r.mount(ctx, r.Image.File); err != nil {
		return nil, err
	}
	return r, nil
}

// BuildStock builds Stock, which takes minutes the first time.
func (r *Rig) BuildStock(ctx context.Context) (err error) {
	if r.Stock == "" {
		r.Stock, err = r.build(ctx, "runsc", "gvisor.dev/gvisor/runsc", "runsc")
	}
	return err
}

// Close undoes what New and the other methods did, newest first.
func (r *Rig) Close() error {
	var errs []error
	for i := len(r.undo) - 1; i >= 0; i-- {
		errs = append(errs, r.undo[i]())
	}
	r.undo = nil
	return errors.Join(errs...)
}

// Temp makes a folder that Close removes.
func (r *Rig) Temp(name string) (string, error) { return os.MkdirTemp(r.temp, name+"-") }

// mount mounts an EROFS file read-only.
func (r *Rig) mount(ctx context.Context, file string) (string, error) {
	dir, err := r.Temp("image")
	if err != nil {
		return "", err
	}
	// Root alone can reach it: go-judge, which mounts it further in a user
	// namespace, could not if it were nosuid.
	var out []byte
	for _, options := range []string{"loop,ro", "ro"} { // without loop only Linux 6.12 and later mount a file
		out, err = exec.CommandContext(ctx, "mount", "-t", "erofs", "-o", options, file, dir).CombinedOutput()
		if err == nil {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("mount %s: %w: %s", file, err, strings.TrimSpace(string(out)))
	}
	r.undo = append(r.undo, func() error {
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if out, err := exec.CommandContext(end, "umount", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("unmount %s: %w: %s", dir, err, strings.TrimSpace(string(out)))
		}
		return nil
	})
	return dir, nil
}

// build builds a package with the versions that the module in folder pins, and
// returns the binary's path. It is kept beside Atoll's, so that the next run
// finds Go's cache warm and little to do.
func (r *Rig) build(ctx context.Context, folder, pkg, name string) (string, error) {
	path := filepath.Join(r.Bin, "bench", name)
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(r.Root, folder),
		"-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	// A dynamically linked runsc cannot start itself anew in its own chroot.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, tail(strings.TrimSpace(string(out))))
	}
	return path, nil
}

// tail cuts a text to its last few lines.
func tail(s string) string {
	const most = 800
	if len(s) > most {
		s = "…" + s[len(s)-most:]
	}
	return s
}
