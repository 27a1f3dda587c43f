package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/node/image"
)

// bareTime is how long a Python program takes without a sandbox: with the
// image's own interpreter under chroot where the image can be mounted, else
// with this machine's.
func (a *cli) bareTime(ctx context.Context, cfg *config.Config, code string) (took time.Duration, label string, err error) {
	if os.Geteuid() == 0 && cfg.Image != image.HostName {
		if took, label, err = bareInImage(ctx, cfg, code); err == nil {
			return took, label, nil
		}
	}
	python, lookErr := exec.LookPath(language.Get(language.Python).Programs[0])
	if lookErr != nil {
		return 0, "", errors.Join(err, lookErr)
	}
	file, remove, err := writeTemp(code)
	if err != nil {
		return 0, "", err
	}
	defer remove()
	took, err = median(ctx, func() error { return exec.CommandContext(ctx, python, file).Run() })
	return took, "this machine's bare python3", err
}

// bareInImage mounts the image read-only and runs the code with its Python.
func bareInImage(ctx context.Context, cfg *config.Config, code string) (took time.Duration, label string, err error) {
	store, err := openImages(cfg)
	if err != nil {
		return 0, "", err
	}
	img, err := store.Get(cfg.Image)
	if err != nil {
		return 0, "", err
	}
	python, ok := img.Interpreter(language.Python)
	if !ok || img.Rootfs.Image == "" {
		return 0, "", errors.New("the image has no Python, which --bare needs")
	}
	root, err := os.MkdirTemp("", "atoll-bare-")
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, os.Remove(root)) }()
	if out, err := exec.CommandContext(ctx, "mount", "-t", "erofs", "-o", "loop,ro,nosuid,nodev", img.Rootfs.Image, root).CombinedOutput(); err != nil {
		return 0, "", fmt.Errorf("mount the image: %w: %s", err, strings.TrimSpace(string(out)))
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, exec.CommandContext(undo, "umount", root).Run())
	}()
	took, err = median(ctx, func() error {
		return exec.CommandContext(ctx, "chroot", root, python.Path, "-c", code).Run()
	})
	return took, "the image's bare Python " + python.Version, err
}
