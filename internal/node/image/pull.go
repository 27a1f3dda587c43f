package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image/layer"
	"github.com/atoll-run/atoll/internal/node/image/source"
)

// Pull imports images that are asked for and missing, from the registries that
// the operator allows.
type Pull struct {
	// Import is Store.Import.
	Import func(ctx context.Context, o ImportOptions) (*Image, error)
	Allow  []string      // repositories, such as "docker.io/library/python", or all below one: "registry.example.com/team/*"
	Reach  outbound.List // where registries may lead besides themselves and public addresses
	Size   int64         // bytes of an image's files
	Time   time.Duration // of an import
	Probe  Probe
	Room   func() error // why nothing may be written to the disk now; nil if it may

	group singleflight.Group
}

// pulledName is the name of an image that was pulled. Two references never have
// the same.
func pulledName(asked string) (string, bool) {
	repository, err := source.Repository(asked)
	if err != nil {
		return "", false
	}
	_, tag := splitReference(asked)
	if i := strings.IndexByte(asked, '@'); i >= 0 {
		tag = asked[i+1:]
	}
	sum := sha256.Sum256([]byte(repository + " " + tag))
	base := plainName(repository[strings.LastIndexByte(repository, '/')+1:] + "-" + tag)
	return base[:min(len(base), 40)] + "." + hex.EncodeToString(sum[:8]), true
}

// allows reports whether the operator lets a repository be pulled from.
func (p *Pull) allows(repository string) bool {
	for _, pattern := range p.Allow {
		if strings.HasPrefix(pattern, "docker.io/") {
			pattern = "index." + pattern // as the library has it
		}
		if below, ok := strings.CutSuffix(pattern, "*"); repository == pattern || ok && strings.HasSuffix(below, "/") && strings.HasPrefix(repository, below) {
			return true
		}
	}
	return false
}

// CheckPull says why a pattern of Pull.Allow can match nothing, or too much.
func CheckPull(pattern string) error {
	host, rest, ok := strings.Cut(pattern, "/")
	if !ok || host == "" || rest == "" || strings.Contains(strings.TrimSuffix(pattern, "/*"), "*") || strings.ContainsAny(pattern, "@ \t") ||
		rest != "*" && source.CheckPath(strings.TrimSuffix(rest, "/*")) != nil {
		return fmt.Errorf("%q is neither a repository, such as docker.io/library/python, nor all below one, such as registry.example.com/team/*", pattern)
	}
	return nil
}

// Provide is Resolve, but imports the image if it is missing or if another version would stand in
// for it. It imports only with Pull, and once for all concurrent callers.
func (a *Aliases) Provide(ctx context.Context, asked string) (string, error) {
	found, standIn, err := a.find(asked)
	if err != nil && requirement.IsVariant(asked) && a.Packages != nil {
		return a.Packages(ctx, asked)
	}
	if err == nil && !standIn || a.Pull == nil || err != nil && fault.KindOf(err) != fault.Invalid || a.aliased(asked) {
		return found, err
	}
	repository, parsed := source.Repository(asked)
	name, ok := pulledName(asked)
	if parsed != nil || !ok {
		return found, err
	}
	if !a.Pull.allows(repository) {
		if standIn {
			return found, nil
		}
		return "", fault.Wrap(fault.Invalid, err, fmt.Sprintf("image: this server has no image %q, and image_pull_allow of its operator does not let it be pulled from %s", asked, repository))
	}
	if err := a.Pull.Room(); err != nil {
		return "", err
	}
	done := a.Pull.group.DoChan(name, func() (any, error) {
		work, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.Pull.Time, fmt.Errorf("the image was not pulled within %s (image_pull_timeout)", a.Pull.Time))
		defer cancel()
		work, stop := WhileRoom(work, a.Pull.Room)
		defer stop()
		return nil, a.Pull.pull(work, asked, name)
	})
	select {
	case r := <-done:
		return name, r.Err
	case <-ctx.Done():
		return "", context.Cause(ctx) // it goes on: who asks next has it
	}
}

// WhileRoom returns a context that ends when room says that the disk has none any more.
func WhileRoom(ctx context.Context, room func() error) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := room(); err != nil {
					cancel(err)
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

func (p *Pull) pull(ctx context.Context, asked, name string) error {
	limits := layer.DefaultLimits()
	limits.Bytes, limits.FileSize = min(limits.Bytes, p.Size), min(limits.FileSize, p.Size)
	_, err := p.Import(ctx, ImportOptions{Name: name, Source: "docker://" + asked, Reach: &p.Reach, Limits: limits, Probe: p.Probe})
	if err == nil {
		return nil
	}
	f, told := errors.AsType[*fault.Error](err)
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("image: %q: %v; nothing was started. Retry later", asked, context.Cause(ctx)))
	case told && f.Kind == fault.Conflict: // an earlier one was a moment faster
		return nil
	case told && f.Kind != fault.Internal && f.Kind != fault.Unavailable:
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("image: %q cannot be pulled: %s", asked, f.Msg))
	case told && f.Kind == fault.Unavailable:
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("image: %q cannot be pulled: %s; nothing was started. Retry later", asked, f.Msg))
	}
	return fmt.Errorf("pull %s: %w", asked, err)
}
