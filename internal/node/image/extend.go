package image

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// ExtendedPrefix begins the names of images that Extend makes, and of no others.
const ExtendedPrefix = requirement.ImagePrefix

// Extended reports whether an image was made by Extend.
func Extended(name string) bool { return strings.HasPrefix(name, ExtendedPrefix) }

// ExtendOptions say what to make of an image. All of it is required but for Env, Probe and
// Progress.
type ExtendOptions struct {
	Name   string    // with ExtendedPrefix
	Base   *Image    // in use
	Upper  io.Reader // a tar stream of what an overlay above Base holds, in gVisor's form
	Source string

	Limits   layer.Limits      // of Upper
	Env      map[string]string // added to that of Base, where it has no such name
	Probe    Probe
	Progress Progress
}

// Extend adds an image to the store: another one, with what programs have written above it
// in a sandbox. Where every sandbox has its own, below /tmp, /home, /root and the like, and
// the caches and logs of package managers, nothing is taken. One that fails leaves nothing
// behind.
func (s *Store) Extend(ctx context.Context, opts ExtendOptions) (_ *Image, err error) {
	if !Extended(opts.Name) {
		return nil, fault.New(fault.Invalid, "the name of an image with packages begins with %s", ExtendedPrefix)
	}
	if err := errors.Join(CheckName(opts.Name), s.free(opts.Name)); err != nil {
		return nil, err
	}
	if opts.Base.Rootfs.Image == "" {
		return nil, fault.New(fault.Invalid, "the image %q is this machine's own files, and nothing can be added to it", opts.Base.Name)
	}
	base, err := os.Open(opts.Base.Rootfs.Image)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	root, err := erofs.Read(base)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image "+opts.Base.Name+" is not of the form that can be added to; import it again")
	}
	temp, undo, err := s.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()

	img := &Image{Name: opts.Name, Source: opts.Source, Env: maps.Clone(opts.Base.Env), Preloads: opts.Base.Preloads}
	if img.Env == nil {
		img.Env = map[string]string{}
	}
	for name, value := range opts.Env {
		if _, there := img.Env[name]; !there {
			img.Env[name] = value
		}
	}
	over := func(spool *os.File, limits layer.Limits) *layer.Merger {
		return layer.NewMergerOver(root, spool, limits)
	}
	fill := func(m *layer.Merger) error { return m.ApplyUpper(ctx, opts.Upper, lasting) }
	if err := s.assembleWith(ctx, temp, img, opts.Limits, over, fill, opts.Probe, opts.Progress); err != nil {
		return nil, err
	}
	if err := s.publish(temp, img.Name, false); err != nil {
		return nil, err
	}
	return s.Get(img.Name)
}

// passing are the folders of which nothing is taken, and files that the sandbox made.
var passing = []string{
	"/tmp", "/proc", "/sys", "/dev", "/run", "/home", "/root", "/.atoll", "/mnt", "/data", "/skills", "/var/tmp", "/var/log", "/var/cache/apt", "/var/lib/apt/lists",
	"/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/machine-id",
}

// lasting reports whether what is at a path stays in an image.
func lasting(path string) bool {
	for _, p := range passing {
		if path == p || strings.HasPrefix(path, p+"/") {
			return false
		}
	}
	return true
}
