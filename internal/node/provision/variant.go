package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// variant returns the name of a variant in the store. It requests a missing one, and waits for it for
// a while.
func (p *Provisioner) variant(ctx context.Context, name string) (string, error) {
	if found, err := p.stored(name); found || err != nil {
		return name, err
	}
	if p.cfg.Variants == nil {
		return "", fault.New(fault.Invalid, "this server has no image %q, and its setting image_variants does not let it make one: ask the operator to run '%s' on the server", name, requirement.VariantCommand(name))
	}
	if err := p.ask(ctx, name); err != nil {
		return "", err
	}
	p.mu.Lock()
	owners := strings.Join(p.variants[name], " ")
	p.mu.Unlock()
	making := fault.New(fault.Unavailable, "the image %q is being made; nothing was run. Retry in a few seconds. The first use of its programs makes it, once for this server, which takes a few minutes", name)
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

// madeVariant returns the name of a variant; "" while it does not exist.
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
		return "", fault.New(fault.Conflict, "the image %q could not be made%s. Atoll tries again %s; to try now, ask the operator to run '%s' on the server", name, reason(b), p.again(name), requirement.VariantCommand(name))
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

// ask requests a variant. It records the request, so that the next process makes the variant if this
// one ends.
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

// Extend implements engine.Resolver. It returns the smallest image that has the programs of the named
// image and extras. If no image has them all, Extend requests one and returns the image with the most
// of them, whose programs report what they lack. need lists the extras without which the call cannot
// work. If no image has those, Extend waits a while for the requested one, unless it cannot be made.
func (p *Provisioner) Extend(ctx context.Context, name string, extras, need []string) (string, error) {
	c, err := p.choose(name, extras)
	if err != nil {
		return "", err
	}
	if c.complete(extras) || c.want == "" || p.cfg.Variants == nil {
		return p.take(ctx, &c, name)
	}
	if err := p.ask(ctx, c.want); err != nil {
		return "", err
	}
	if c.lacks(need) == 0 {
		return p.take(ctx, &c, name)
	}
	made, err := p.variant(ctx, c.want)
	if fault.KindOf(err) == fault.Conflict {
		return p.take(ctx, &c, name)
	}
	return made, err
}

// take returns the chosen image, or else the named one, which may have to be made.
func (p *Provisioner) take(ctx context.Context, c *choice, named string) (string, error) {
	if c.best != "" {
		return c.best, nil
	}
	return p.Resolve(ctx, named)
}

// choice holds the images that may serve a request for an image with extras.
type choice struct {
	want string   // the variant with exactly these extras; "" if the image cannot have any
	best string   // the image to use until then; "" if there is none
	has  []string // extras of best
}

// lacks counts the extras that best does not have.
func (c *choice) lacks(extras []string) (n int) {
	for _, e := range extras {
		if !slices.Contains(c.has, e) {
			n++
		}
	}
	return n
}

// complete reports whether best has all of the extras.
func (c *choice) complete(extras []string) bool { return c.best != "" && c.lacks(extras) == 0 }

// choose compares the images that include the named image. If that is neither Atoll's default image nor
// a variant of it, the choice is empty.
func (p *Provisioner) choose(name string, extras []string) (c choice, err error) {
	of, variant := requirement.ParseVariant(name)
	if name != image.Default && !variant {
		return c, nil
	}
	base, err := p.cfg.Images.Get(image.Default)
	switch {
	case err != nil && fault.KindOf(err) != fault.NotFound:
		return c, err
	case err == nil && base.Recipe == "" && !variant:
		return c, nil // another image under this name
	}
	c.want = requirement.Variant(slices.Concat(of, extras))
	consider := func(name string, has []string) {
		other := choice{has: has}
		if other.lacks(of) == 0 && (c.best == "" || other.lacks(extras) < c.lacks(extras)) { // of equal ones, the first is the smallest
			c.best, c.has = name, has
		}
	}
	if err == nil && base.Recipe != "" {
		consider(image.Default, base.With)
	}
	for _, v := range requirement.Variants() {
		found, err := p.stored(v)
		if err != nil {
			return c, err
		}
		if has, _ := requirement.ParseVariant(v); found {
			consider(v, has)
		}
	}
	return c, nil
}

// pending returns the variant with these extras that is being made, also if it has others; else the
// one with exactly these.
func (p *Provisioner) pending(want string) string {
	extras, _ := requirement.ParseVariant(want)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range requirement.Variants() {
		has, _ := requirement.ParseVariant(v)
		other := choice{has: has}
		if state := p.builds[v].State; other.lacks(extras) == 0 && (p.asked[v] || state == requirement.Building || state == requirement.Failed) {
			return v
		}
	}
	return want
}

// Prepare requests the image with extras, if the named image can have them. While the server makes it,
// Prepare returns a warning that says so.
func (p *Provisioner) Prepare(ctx context.Context, name string, extras []string) (string, error) {
	c, err := p.choose(name, extras)
	if err != nil || c.complete(extras) || c.want == "" || p.cfg.Variants == nil {
		return "", err
	}
	if err := p.ask(ctx, c.want); err != nil {
		return "", err
	}
	if _, err := p.madeVariant(c.want); err != nil {
		if fault.KindOf(err) == fault.Conflict {
			return "", nil // the tools say why, if they are called
		}
		return "", err
	}
	return fmt.Sprintf("The server is making the image %q, which has programs that the agent's skills need. That takes a few minutes, once for this server. A first call that needs them waits for it.", c.want), nil
}

// Lacking explains to an agent why its sandbox, of an image as an environment names it, lacks
// extras; "" if it cannot tell.
func (p *Provisioner) Lacking(name string, extras []string) string {
	c, err := p.choose(name, extras)
	switch {
	case err != nil || c.want == "":
		return ""
	case c.complete(extras):
		return "this sandbox was started before the server had the image with them. The server has it now, so a new sandbox has the programs. Tell the user to try again in a new session"
	case p.cfg.Variants == nil:
		return ""
	}
	want := p.pending(c.want)
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
		return context.Cause(ctx) // the next process starts again
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
		if err != nil { // it names a file of this server or a URL, perhaps with a token, which tenants must not see
			return fault.Wrap(fault.KindOf(err), err, "its prebuilt archive could not be imported; the server's log says why")
		}
		return nil
	case v.Build == nil:
		return fault.New(fault.Unavailable, "image_variant_sources has no archive of it, and image_variants lets the server build none")
	}
	_, err := v.Build.BuildDefault(ctx, image.BuildOptions{Name: name, With: extras, Mirror: v.Mirror, Background: true, Probe: p.cfg.Installer.Probe(), Progress: progress})
	return err
}
