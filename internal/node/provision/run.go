package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// Run installs what environments want, and collects what none wants any more, until ctx
// ends.
func (p *Provisioner) Run(ctx context.Context) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := p.Step(ctx); err != nil && ctx.Err() == nil {
			p.cfg.Log.WarnContext(ctx, "cannot process the packages of environments", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-p.wake:
		}
	}
}

// Step deletes unwanted images and makes missing ones, one after the other, until it can make no
// more: variants of the default image first, because
// packages may be installed above them, then packages of the tenant that has had the least time of
// late.
func (p *Provisioner) Step(ctx context.Context) error {
	for tried := map[string]bool{}; ; {
		all, err := p.load(ctx)
		if err != nil {
			return err
		}
		names := map[string]bool{}
		for _, w := range all {
			base, err := p.cfg.Images.Get(w.Image)
			switch {
			case err == nil:
				names[nameOf(w.Ref(), base)] = true
			case fault.KindOf(err) == fault.Internal:
				return err
			}
		}
		if err := p.collect(ctx, names); err != nil { // first, as it makes room
			return err
		}
		more, err := p.nextVariant(ctx, tried)
		if err == nil && !more {
			more, err = p.next(ctx, all, tried)
		}
		if err != nil || !more {
			return err
		}
	}
}

// next makes the image whose turn it is; false if there is none. tried has the references that this
// step has seen to.
func (p *Provisioner) next(ctx context.Context, all []requirement.Wanted, tried map[string]bool) (bool, error) {
	waiting, built := map[string][]*requirement.Wanted{}, map[string]int{}
	var lacking []*requirement.Wanted
	for i := range all {
		w := &all[i]
		made, due, err := p.look(ctx, w)
		if err != nil {
			return false, err
		}
		if made {
			for _, t := range w.Tenants {
				built[t]++
			}
		} else if due && !tried[w.Ref()] {
			lacking = append(lacking, w)
		}
	}
	var tenants []string
	for _, w := range lacking {
		over := true
		for _, t := range w.Tenants {
			if p.cfg.PerTenant > 0 && built[t] >= p.cfg.PerTenant {
				continue
			}
			if over = false; waiting[t] == nil {
				tenants = append(tenants, t)
			}
			waiting[t] = append(waiting[t], w)
		}
		if over {
			tried[w.Ref()] = true
			if err := p.refuse(ctx, w); err != nil {
				return false, err
			}
		}
	}
	t := p.order.Next(tenants)
	if t == "" {
		return false, nil
	}
	w := waiting[t][0]
	tried[w.Ref()] = true
	base, release, err := p.cfg.Images.Use(w.Image)
	switch {
	case err == nil:
		began := time.Now()
		err = errors.Join(p.make(ctx, w, base), release())
		p.order.Charge(t, time.Since(began).Seconds())
	case fault.KindOf(err) != fault.Internal:
		err = nil // it is being replaced, or is gone: calls are told so
	}
	return true, err
}

// look reports whether the image of a set is there, or is to be made now.
func (p *Provisioner) look(ctx context.Context, w *requirement.Wanted) (made, due bool, err error) {
	base, err := p.cfg.Images.Get(w.Image)
	if err != nil {
		if fault.KindOf(err) != fault.Internal { // it is gone: calls are told so
			err = nil
		}
		return false, false, err
	}
	ref, name := w.Ref(), nameOf(w.Ref(), base)
	p.mu.Lock()
	b, later := p.builds[ref], p.later[ref]
	p.mu.Unlock()
	_, err = p.cfg.Images.Get(name)
	switch {
	case err == nil && (b.State != requirement.Ready || b.Image != name): // a crash came between
		return true, false, p.make(ctx, w, base)
	case err == nil:
		return true, false, nil
	case fault.KindOf(err) != fault.NotFound:
		return false, false, err
	}
	failed := b.Image == name && b.State == requirement.Failed
	return false, !failed && !p.cfg.Clock().Before(later), nil
}

// refuse notes that a set is not installed because its tenants have the most images.
func (p *Provisioner) refuse(ctx context.Context, w *requirement.Wanted) error {
	base, err := p.cfg.Images.Get(w.Image)
	if err != nil {
		return nil //nolint:nilerr // calls are told so
	}
	ref := w.Ref()
	log := &requirement.Tail{}
	log.Say(fmt.Sprintf("the environments of this tenant have %d images with packages, which is its limit (package_images_per_tenant)", p.cfg.PerTenant))
	return p.note(ctx, requirement.Build{Ref: ref, Image: nameOf(ref, base), State: requirement.Failed, Log: log.Lines()})
}

// load reads what is wanted, and what is known of it.
func (p *Provisioner) load(ctx context.Context) ([]requirement.Wanted, error) {
	all, err := p.cfg.Store.Wanted(ctx)
	if err != nil {
		return nil, err
	}
	mine, err := p.cfg.Store.Of(ctx, p.cfg.Executor)
	if err != nil {
		return nil, err
	}
	wanted, builds, variants := map[string]requirement.Wanted{}, map[string]requirement.Build{}, map[string][]string{}
	for _, w := range all {
		if requirement.IsVariant(w.Image) {
			variants[w.Image] = append(variants[w.Image], w.Tenants...)
		}
	}
	for name, tenants := range variants {
		variants[name] = slices.Compact(slices.Sorted(slices.Values(tenants)))
	}
	all = slices.DeleteFunc(all, func(w requirement.Wanted) bool { return w.Set.Empty() || p.cfg.Most == 0 })
	for _, w := range all {
		wanted[w.Ref()] = w
	}
	for _, b := range mine {
		if _, ok := wanted[b.Ref]; ok || requirement.IsVariant(b.Ref) {
			builds[b.Ref] = b
		} else if err := p.cfg.Store.Delete(ctx, b.Ref, b.Executor); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted, p.builds, p.variants = wanted, builds, variants
	if !p.loaded { // an earlier process was asked for these, and has not made them
		for ref, b := range builds {
			if requirement.IsVariant(ref) && b.State != requirement.Ready {
				p.asked[ref] = true
			}
		}
		p.loaded = true
	}
	for ref := range p.later {
		if _, ok := wanted[ref]; !ok && !requirement.IsVariant(ref) {
			delete(p.later, ref)
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return all, nil
}

// make makes one image, unless it is there or has failed.
func (p *Provisioner) make(ctx context.Context, w *requirement.Wanted, base *image.Image) error {
	ref := w.Ref()
	name := nameOf(ref, base)
	p.mu.Lock()
	b, later := p.builds[ref], p.later[ref]
	p.mu.Unlock()
	if b.Image != name {
		b = requirement.Build{Ref: ref, Image: name}
	}
	_, err := p.cfg.Images.Get(name)
	switch {
	case err == nil && b.State == requirement.Ready:
		return nil
	case err == nil:
		b.State = requirement.Ready // a crash came between
		return p.note(ctx, b)
	case fault.KindOf(err) != fault.NotFound:
		return err
	case b.State == requirement.Failed, p.cfg.Clock().Before(later):
		return nil
	}
	log := &requirement.Tail{}
	b.State, b.Log = requirement.Building, nil
	if err := p.note(ctx, b); err != nil {
		return err
	}
	p.cfg.Log.InfoContext(ctx, "installing the packages of an environment", "image", name, "packages", describe(w))
	began := time.Now()
	err = p.build(ctx, w, base, name, log)
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next process starts again
	}
	b.Log = log.Lines()
	var refused *engine.ProgramError
	switch {
	case err == nil:
		b.State = requirement.Ready
		p.count(packagesBuild, resultReady)
		p.cfg.Log.InfoContext(ctx, "installed the packages of an environment", "image", name, "duration", time.Since(began))
	case errors.As(err, &refused), fault.KindOf(err) == fault.Invalid, fault.KindOf(err) == fault.Exhausted:
		b.State = requirement.Failed
		p.count(packagesBuild, resultFailed)
		log.Say(message(err, uninstalled))
		if p.cfg.Trouble != nil {
			if why := p.cfg.Trouble(began); why != "" {
				log.Say(why)
			}
		}
		b.Log = log.Lines()
		p.cfg.Log.WarnContext(ctx, "cannot install the packages of an environment", "image", name, "error", err)
	default: // of this server; it may go next time
		p.count(packagesBuild, resultFailed)
		log.Say(message(err, uninstalled) + "; retrying in " + retryTime.String())
		b.Log = log.Lines()
		p.cfg.Log.ErrorContext(ctx, "the packages of an environment are not installed", "image", name, "error", err)
		p.mu.Lock()
		p.later[ref] = p.cfg.Clock().Add(retryTime)
		p.mu.Unlock()
	}
	return p.note(ctx, b)
}

const uninstalled = "this server could not install them; its log says why"

// message returns the part of an error that tenants may see; otherwise if they may see none of it.
func message(err error, otherwise string) string {
	if refused, ok := errors.AsType[*engine.ProgramError](err); ok {
		return refused.Reason
	}
	if told, ok := errors.AsType[*fault.Error](err); ok && told.Msg != "" {
		return told.Msg
	}
	return otherwise
}

// build makes the image.
func (p *Provisioner) build(ctx context.Context, w *requirement.Wanted, base *image.Image, name string, log *requirement.Tail) (err error) {
	if err := p.cfg.Allowed.Check(&w.Set); err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	argv, err := programs(base, &w.Set)
	if err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	if err := p.room(base); err != nil {
		return err
	}
	upper, err := os.CreateTemp(p.cfg.Images.Dir(), ".tmp-upper-*") // which a start sweeps
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upper.Close()) }()
	if err := os.Remove(upper.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // it goes with this process
		return err
	}
	bounds := layer.DefaultLimits()
	bounds.Bytes, bounds.FileSize = 2*p.cfg.Size, p.cfg.Size
	if err := p.cfg.Installer.Install(ctx, engine.Installation{
		Image: base, Limits: limits(p.cfg.Size), Variables: variables(), Programs: argv, Timeout: p.cfg.Time, Output: log, MaxUpper: bounds.Bytes,
	}, upper); err != nil {
		return err
	}
	if _, err := upper.Seek(0, 0); err != nil {
		return err
	}
	_, err = p.cfg.Images.Extend(ctx, image.ExtendOptions{
		Name: name, Base: base, Upper: upper, Source: describe(w), Limits: bounds, Env: imageVariables(&w.Set), Probe: p.cfg.Installer.Probe(),
	})
	return err
}

// room refuses a build above what this server keeps.
func (p *Provisioner) room(base *image.Image) error {
	if p.cfg.Room != nil {
		if err := p.cfg.Room(base.Size + 3*p.cfg.Size); err != nil {
			return err
		}
	}
	all, err := p.cfg.Images.List()
	if err != nil {
		return err
	}
	n := 0
	for _, img := range all {
		if image.Extended(img.Name) {
			n++
		}
	}
	if n >= p.cfg.Most {
		return fault.New(fault.Unavailable, "this server has %d images with packages, which is its limit (package_images)", n)
	}
	return nil
}

// limits are those of the sandbox of a build, whose files are in memory: what it installs,
// and what it downloads and unpacks on the way.
func limits(size int64) runtime.Limits {
	l := runtime.DefaultLimits()
	l.CPU, l.Root, l.Tmp, l.Processes, l.OpenFiles, l.Inodes = 2, size, size, 1024, 4096, 1_000_000
	l.Memory = 2*size + 1<<30
	return l
}

// collect removes images that no environment, sandbox or snapshot needs; keep has the names
// of those that environments want.
func (p *Provisioner) collect(ctx context.Context, keep map[string]bool) error {
	all, err := p.cfg.Images.List()
	if err != nil {
		return err
	}
	var unwanted []string
	for _, img := range all {
		if image.Extended(img.Name) && !keep[img.Name] {
			unwanted = append(unwanted, img.Name)
		}
	}
	if len(unwanted) == 0 {
		return nil
	}
	used, err := p.cfg.Store.UsedImages(ctx)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, name := range used {
		needed[name] = true
	}
	for _, name := range unwanted {
		if needed[name] {
			continue
		}
		switch err := p.cfg.Images.Remove(name); {
		case err == nil:
			p.cfg.Log.InfoContext(ctx, "removed an image with packages that no environment uses", "image", name)
		case fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.NotFound: // else it is in use
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}
