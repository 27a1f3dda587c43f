package image

import (
	"context"
	"errors"
	"io"

	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image/debian"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// BuildOptions say how to build the default image.
type BuildOptions struct {
	Name       string   // "" means Default, or with extras that variant of it
	With       []string // extras, such as "browser"; see Extras
	Mirror     string   // Debian archive to use; "" finds one, see debian.Options
	Replace    bool     // an image of that name which no sandbox uses
	Background bool     // builds with low priority
	Probe      Probe    // tells the interpreters' versions; nil leaves them unknown
	Progress   Progress
}

// Extras lists what BuildOptions.With can name.
func Extras() []string { return debian.Extras() }

// CheckExtras returns names of extras without repetition and in order, or an Invalid fault.
func CheckExtras(names []string) ([]string, error) { return debian.CheckExtras(names) }

// Recipe is what images that BuildDefault makes with these extras now have as their Recipe.
func Recipe(with []string) string { return debian.Recipe(with) }

// CanBuild reports what this machine lacks to build the default image, an Unavailable fault.
func CanBuild() error { return debian.Available() }

// BuildDefault builds the image that has Python, Node.js, Bash and the usual
// libraries and tools, from Debian's packages. It takes a minute or two. What
// the machine lacks for it is an Unavailable fault.Error.
func (s *Store) BuildDefault(ctx context.Context, opts BuildOptions) (_ *Image, err error) {
	if opts.With, err = debian.CheckExtras(opts.With); err != nil {
		return nil, err
	}
	if opts.Name == "" {
		opts.Name = requirement.Variant(opts.With)
	}
	if opts.Name == HostName {
		return nil, errReserved
	}
	if err := s.admit(opts.Name, nil, opts.Replace); err != nil {
		return nil, err
	}
	if err := debian.Available(); err != nil {
		return nil, err
	}
	temp, undo, err := s.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()

	img := &Image{Name: opts.Name, Source: "debian:" + debian.Suite, Recipe: debian.Recipe(opts.With), With: opts.With, Env: debian.Env(), Preloads: debian.Preloads()}
	fill := func(m *layer.Merger) error {
		from := debian.Options{Mirror: opts.Mirror, With: opts.With, Background: opts.Background, Progress: func(line string) { opts.Progress.say("%s", line) }}
		err := debian.Bootstrap(ctx, from, func(r io.Reader) error { return m.Apply(ctx, r) })
		if err != nil {
			return err
		}
		return debian.Finish(m.Root())
	}
	if err := s.assemble(ctx, temp, img, layer.Limits{}, fill, opts.Probe, opts.Progress); err != nil {
		return nil, err
	}
	if err := s.publish(temp, img.Name, opts.Replace); err != nil {
		return nil, err
	}
	return s.Get(img.Name)
}
