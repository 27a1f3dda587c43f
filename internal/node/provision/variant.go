package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image"
)

// Variants says how variants of the default image are made: one with extras, such as
// "default+browser", is imported if a prebuilt one exists, or else built from Debian's packages.
// Their builds are recorded like those of packages, by the variant's name.
type Variants struct {
	// Source returns the archive of a prebuilt variant, a file or URL; "" if there is none.
	Source func(name string) string
	Build  Builder // nil: variants are only imported
	Mirror string  // of Debian; "" for the usual one
	Time   time.Duration
}

// Builder builds the default image and its variants; an *image.Store does.
type Builder interface {
	BuildDefault(ctx context.Context, opts image.BuildOptions) (*image.Image, error)
}

const (
	// variantSpace is the disk space that a build of a variant needs: its files once unpacked and
	// once as an image.
	variantSpace = 6 << 30
	// Pauses between the attempts at a variant. Each is twice the one before it.
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// variant returns the name of a variant in the store. It has a missing one made, and waits for it
// for a while.
func (p *Provisioner) variant(ctx context.Context, name string) (string, error) {
	if found, err := p.stored(name); found || err != nil {
		return name, err
	}
	if p.cfg.Variants == nil {
		return "", fault.New(fault.Invalid, "this server has no image %q, and its setting image_variants does not let it make one: have the operator run '%s' on the server", name, requirement.VariantCommand(name))
	}
	if err := p.ask(ctx, name); err != nil {
		return "", err
	}
	p.mu.Lock()
	owners := strings.Join(p.variants[name], " ")
	p.mu.Unlock()
	making := fault.New(fault.Unavailable, "the image %q is being made; nothing was run, retry after a moment. The first use of its programs makes it, once for this server, which takes a few minutes", name)
	return p.await(ctx, owners, making, func() (string, error) { return p.madeVariant(name) })
}

// stored reports whether the store has an image.
func (p *Provisioner) stored(name string) (bool, error) {
	_, err := p.cfg.Images.Get(name)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// madeVariant returns the name of a variant; "" while it is not there.
func (p *Provisioner) madeVariant(name string) (string, error) {
	if found, err := p.stored(name); err != nil {
		return "", err
	} else if found {
		return name, nil
	}
	p.mu.Lock()
	b := p.builds[name]
	p.mu.Unlock()
	if b.State == requirement.Failed {
		return "", fault.New(fault.Conflict, "the image %q could not be made%s. Atoll tries again %s; to try now, have the operator run '%s' on the server", name, reason(b), p.again(name), requirement.VariantCommand(name))
	}
	return "", nil
}

// reason says why a build failed.
func reason(b requirement.Build) string {
	if n := len(b.Log); n > 0 {
		return ": " + b.Log[n-1]
	}
	return ""
}

// again says when a variant is tried again.
func (p *Provisioner) again(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.later[name].Sub(p.cfg.Clock())
	if left <= 0 {
		return "soon"
	}
	return fmt.Sprintf("in %d min", int((left+time.Minute-1)/time.Minute))
}

// ask has a variant made. It is recorded, so that the next process makes it if this one ends.
func (p *Provisioner) ask(ctx context.Context, name string) error {
	p.mu.Lock()
	known := p.asked[name] || p.builds[name].State == requirement.Failed || p.builds[name].State == requirement.Building
	p.asked[name] = true
	p.mu.Unlock()
	if !known {
		if err := p.note(context.WithoutCancel(ctx), requirement.Build{Ref: name, Image: name, State: requirement.Building}); err != nil {
			return err
		}
	}
	p.stir()
	return nil
}

// Extend implements engine.Resolver. It prefers an image that exists: of the variants with these
// extras the one with the fewest others. If there is none it has one made. If need is set it waits
// for that, for a while. Otherwise, or if the variant cannot be made, it returns the image without
// the extras, in which programs say what they lack.
func (p *Provisioner) Extend(ctx context.Context, name string, extras []string, need bool) (string, error) {
	want, found, err := p.extended(name, extras)
	switch {
	case err != nil:
		return "", err
	case found:
		return want, nil
	case want == "" || p.cfg.Variants == nil:
		return p.Resolve(ctx, name)
	case !need:
		if err := p.ask(ctx, want); err != nil {
			return "", err
		}
		return p.Resolve(ctx, name)
	}
	made, err := p.variant(ctx, want)
	if fault.KindOf(err) == fault.Conflict {
		return p.Resolve(ctx, name)
	}
	return made, err
}

// extended returns the image that has extras besides what the named image has, and whether it
// exists; "" if that image is neither Atoll's default image nor a variant of it.
func (p *Provisioner) extended(name string, extras []string) (want string, found bool, err error) {
	of, variant := requirement.ParseVariant(name)
	if name != image.Default && !variant {
		return "", false, nil
	}
	base, err := p.cfg.Images.Get(image.Default)
	switch {
	case err == nil && name == image.Default && base.Recipe == "":
		return "", false, nil // somebody else's image under this name
	case err == nil && containsAll(base.With, append(of, extras...)):
		return image.Default, true, nil
	case err != nil && fault.KindOf(err) != fault.NotFound:
		return "", false, err
	}
	for _, v := range requirement.Variants() {
		if has, _ := requirement.ParseVariant(v); !containsAll(has, append(of, extras...)) {
			continue
		}
		if found, err := p.stored(v); found || err != nil {
			return v, found, err
		}
	}
	return requirement.Variant(append(of, extras...)), false, nil
}

func containsAll(have, want []string) bool {
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || h == w
		}
		if !found {
			return false
		}
	}
	return true
}

// Lacking explains to an agent why its sandbox, of an image as an environment names it, lacks
// extras; "" if nothing is known of it.
func (p *Provisioner) Lacking(name string, extras []string) string {
	want, found, err := p.extended(name, extras)
	switch {
	case err != nil || want == "":
		return ""
	case found:
		return "this sandbox was started before the server had the image with them. The server has it by now: a sandbox that starts from now on has the programs. Tell the user to try again in a new session"
	case p.cfg.Variants == nil:
		return ""
	}
	if _, err := p.madeVariant(want); err != nil {
		var told *fault.Error
		if errors.As(err, &told) {
			return told.Msg
		}
		return ""
	}
	return fmt.Sprintf("the server is making the image %q, which has them. That takes a few minutes, and this sandbox was started before. Tell the user to try again in a new session later", want)
}

// nextVariant makes the missing variant whose turn it is; false if there is none. tried has those
// that this step has made or tried to.
func (p *Provisioner) nextVariant(ctx context.Context, tried map[string]bool) (bool, error) {
	if p.cfg.Variants == nil {
		return false, nil
	}
	for _, name := range requirement.Variants() {
		p.mu.Lock()
		wanted := p.asked[name] || len(p.variants[name]) > 0
		b, due := p.builds[name], !p.cfg.Clock().Before(p.later[name])
		p.mu.Unlock()
		if !wanted || tried[name] {
			continue
		}
		found, err := p.stored(name)
		if err != nil {
			return false, err
		}
		if found && b.State == requirement.Ready {
			p.settle(name, nil)
			continue
		}
		if found { // made by a command, or just before a crash
			p.settle(name, nil)
			if err := p.note(ctx, requirement.Build{Ref: name, Image: name, State: requirement.Ready}); err != nil {
				return false, err
			}
			continue
		}
		if due {
			tried[name] = true
			return true, p.makeVariant(ctx, name)
		}
	}
	return false, nil
}

// settle forgets that a variant was asked for, and delays the next attempt at it after a failure.
func (p *Provisioner) settle(name string, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, name)
	if failure == nil {
		delete(p.later, name)
		delete(p.failures, name)
		return
	}
	pause := min(firstRetry<<min(p.failures[name], 10), lastRetry)
	p.failures[name]++
	p.later[name] = p.cfg.Clock().Add(pause)
}

// makeVariant makes a variant and records how that goes.
func (p *Provisioner) makeVariant(ctx context.Context, name string) error {
	log := &requirement.Tail{}
	b := requirement.Build{Ref: name, Image: name, State: requirement.Building}
	if err := p.note(ctx, b); err != nil {
		return err
	}
	p.cfg.Log.InfoContext(ctx, "making a variant of the default image", "image", name)
	began, last := time.Now(), ""
	err := p.buildVariant(ctx, name, func(r image.Report) {
		if r.Step == last {
			return
		}
		last = r.Step
		log.Say(r.Step)
		b.Log = log.Lines()
		if err := p.note(ctx, b); err != nil && ctx.Err() == nil {
			p.cfg.Log.WarnContext(ctx, "cannot record how far a variant of the default image is", "image", name, "error", err)
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next process begins anew
	}
	if fault.KindOf(err) == fault.Conflict { // a command was faster
		if found, _ := p.stored(name); found {
			err = nil
		}
	}
	p.settle(name, err)
	if err == nil {
		b.State = requirement.Ready
		p.count(variantBuild, resultReady)
		p.cfg.Log.InfoContext(ctx, "made a variant of the default image", "image", name, "duration", time.Since(began))
	} else {
		b.State = requirement.Failed
		log.Say(message(err, "this server could not make it; its log says why"))
		p.count(variantBuild, resultFailed)
		p.cfg.Log.WarnContext(ctx, "a variant of the default image cannot be made", "image", name, "command", requirement.VariantCommand(name), "error", err)
	}
	b.Log = log.Lines()
	return p.note(ctx, b)
}

// buildVariant imports or builds a variant within its time, while the disk has room.
func (p *Provisioner) buildVariant(ctx context.Context, name string, progress image.Progress) error {
	v := p.cfg.Variants
	if p.cfg.Room != nil {
		if err := p.cfg.Room(variantSpace); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, v.Time, fault.New(fault.Unavailable, "it took longer than %s (image_variant_time)", v.Time))
	defer cancel()
	if p.cfg.Room != nil {
		var stop func()
		ctx, stop = image.WhileRoom(ctx, func() error { return p.cfg.Room(0) })
		defer stop()
	}
	err := p.importOrBuild(ctx, name, progress)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (p *Provisioner) importOrBuild(ctx context.Context, name string, progress image.Progress) error {
	v := p.cfg.Variants
	source := ""
	if v.Source != nil {
		source = v.Source(name)
	}
	extras, _ := requirement.ParseVariant(name)
	switch {
	case source != "":
		_, err := p.cfg.Images.ImportArchive(ctx, image.ImportOptions{Name: name, Source: source, Progress: progress})
		return err
	case v.Build == nil:
		return fault.New(fault.Unavailable, "image_variant_sources has no archive of it, and image_variants lets the server build none")
	}
	_, err := v.Build.BuildDefault(ctx, image.BuildOptions{Name: name, With: extras, Mirror: v.Mirror, Probe: p.cfg.Installer.Probe(), Progress: progress})
	return err
}
