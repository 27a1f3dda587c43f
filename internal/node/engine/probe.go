package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/image"
)

// probeTimeout bounds one probed program, probeOutput what it may say.
const (
	probeTimeout = 2 * time.Minute
	probeOutput  = 64 << 10
)

// OpenProbe returns a function that runs a program of an image in a sandbox of
// its own. Close lets go of the runtime's state folder.
func OpenProbe(ctx context.Context, p Platform, limits runtime.Limits) (probe image.Probe, done func() error, err error) {
	rt, err := openHost(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, rootfs runtime.Rootfs, argv []string) ([]byte, error) {
		return runProbe(ctx, rt, limits, rootfs, argv)
	}, rt.Close, nil
}

// Probe runs a program of an image in a sandbox of its own.
func (e *Engine) Probe() image.Probe {
	return func(ctx context.Context, rootfs runtime.Rootfs, argv []string) ([]byte, error) {
		return runProbe(ctx, e.host, e.cfg.Limits, rootfs, argv)
	}
}

func runProbe(ctx context.Context, rt runtime.Runtime, limits runtime.Limits, rootfs runtime.Rootfs, argv []string) (_ []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	inst, err := rt.Create(ctx, runtime.Spec{
		ID: runtime.NewID(), Rootfs: rootfs, Limits: limits, Labels: map[string]string{"probe": argv[0]},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, inst.Destroy(context.WithoutCancel(ctx))) }()
	c, err := initclient.Dial(ctx, inst.Channel())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var stdout, stderr bytes.Buffer
	res, err := c.Run(ctx, initclient.RunSpec{
		Command: initclient.Command{
			Path: argv[0], Argv: argv, Dir: "/",
			Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + runtime.Home, "LANG=C.UTF-8"},
			Limits: initclient.Limits{Processes: limits.Processes, OpenFiles: limits.OpenFiles},
		},
		Timeout: probeTimeout, OutputLimit: probeOutput,
	}, func(s initclient.Stream, b []byte) {
		if s == initclient.Stdout {
			stdout.Write(b)
		} else {
			stderr.Write(b)
		}
	})
	if err != nil {
		return nil, err
	}
	if res.ExitCode != 0 {
		return nil, fmt.Errorf("%s exited with %d: %s", argv[0], res.ExitCode, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}
