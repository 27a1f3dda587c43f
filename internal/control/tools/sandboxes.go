package tools

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
)

func sandboxCreate(ctx context.Context, c *call, in *SandboxCreateInput) (*SandboxCreateOutput, error) {
	ms, err := integer("sleep_after_ms", in.SleepAfterMS, 1, maxWhole/int64(time.Millisecond))
	if err != nil {
		return nil, err
	}
	c.row.Command = []byte(*in.Sandbox)
	spec, err := c.spec(ctx)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		spec = &sandbox.Spec{}
	}
	spec.SleepAfter = time.Duration(ms) * time.Millisecond
	if in.Image != nil {
		spec.Image = *in.Image
	} else if name, err := c.set.cfg.Images.Resolve(ctx, contractImage); fault.KindOf(err) == fault.Unavailable {
		return nil, err
	} else if err == nil && name == c.by.Principal.Environment.RunImage() {
		spec.Image, spec.ImageAssumed = contractImage, true
	}
	sb, created, err := c.set.cfg.Pool.Ensure(ctx, c.by.Principal, c.by.Session, *in.Sandbox, spec)
	if err != nil {
		return nil, err
	}
	c.row.SetSandbox(sb)
	c.row.Mounts = storage.Labels(sb.Mounts)
	return &SandboxCreateOutput{Sandbox: *in.Sandbox, Created: created, Warning: sb.ImageWarning}, nil
}

// contractImage is the contract's default. A call that names no image gets that
// of its environment, under this name where both are the same.
const contractImage = "node:22"

func sandboxList(ctx context.Context, c *call, _ *SandboxListInput) (*SandboxListOutput, error) {
	all, err := c.set.cfg.Pool.List(ctx, c.by.Principal, c.by.Session)
	if err != nil {
		return nil, err
	}
	out := &SandboxListOutput{Sandboxes: []ListedSandbox{}}
	for _, sb := range all {
		status := sb.Status()
		if status != sandbox.Running && status != sandbox.Sleeping {
			continue // it is no more
		}
		image := sb.ImageAlias
		if image == "" {
			image = sb.Image
		}
		out.Sandboxes = append(out.Sandboxes, ListedSandbox{Name: sb.Name, Image: image, Status: string(status), Warning: sb.ImageWarning})
	}
	return out, nil
}
