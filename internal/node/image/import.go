package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/layer"
	"github.com/atoll-run/atoll/internal/node/image/source"
)

// ImportOptions say what to import. Name and Source must be set.
type ImportOptions struct {
	Name    string
	Source  string // a registry's reference or a path, see source.Open
	Replace bool   // an image of that name which no sandbox uses

	Limits    layer.Limits   // the zero value means layer.DefaultLimits
	PlainHTTP bool           // allow a registry without TLS beyond loopback
	Reach     *outbound.List // where a registry may lead besides public addresses; nil for anywhere
	Preloads  []string       // Python modules worth importing ahead
	Probe     Probe          // tells the interpreters' versions; nil leaves them unknown
	Progress  Progress
}

// defaultPath is what programs get from an image that sets no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Import adds an OCI image to the store. What is wrong with the source is a
// fault.Error; a failed import leaves nothing behind.
func (s *Store) Import(ctx context.Context, opts ImportOptions) (_ *Image, err error) {
	if opts.Name == HostName {
		return nil, errReserved
	}
	if err := s.admit(opts.Name, opts.Preloads, opts.Replace); err != nil {
		return nil, err
	}
	temp, undo, err := s.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()

	opts.Progress.say("finding %s", opts.Source)
	src, err := source.Open(ctx, opts.Source, source.Options{PlainHTTP: opts.PlainHTTP, Reach: opts.Reach, Temp: temp})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()

	img := &Image{Name: opts.Name, Source: opts.Source, Digest: src.Digest, Env: environment(src.Config.Config.Env), Preloads: opts.Preloads}
	fill := func(m *layer.Merger) error { return mergeLayers(ctx, m, src, opts.Progress) }
	if err := s.assemble(ctx, temp, img, opts.Limits, fill, opts.Probe, opts.Progress); err != nil {
		return nil, err
	}
	if err := s.publish(temp, img.Name, opts.Replace); err != nil {
		return nil, err
	}
	return s.Get(img.Name)
}

// admit checks what can be checked before the long work.
func (s *Store) admit(name string, preloads []string, replace bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if Extended(name) {
		return fault.New(fault.Invalid, "names that begin with %s are kept for images with the packages of environments", ExtendedPrefix)
	}
	if err := checkPreloads(preloads); err != nil {
		return err
	}
	if err := s.free(name); err != nil && !(replace && fault.KindOf(err) == fault.Conflict) {
		return err
	}
	return nil
}

// mergeLayers applies an image's layers in order.
func mergeLayers(ctx context.Context, m *layer.Merger, src *source.Image, progress Progress) error {
	var done, total int64
	for _, l := range src.Layers {
		total += l.Size
	}
	for k, l := range src.Layers {
		step := fmt.Sprintf("reading layer %d of %d", k+1, len(src.Layers))
		r, err := l.Open(ctx, func(n int) {
			if done += int64(n); progress != nil {
				progress(Report{Step: step, Done: done, Total: total})
			}
		})
		if err != nil {
			return err
		}
		if err := errors.Join(m.Apply(ctx, r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// assemble fills the folder temp: it merges what fill gives, makes it fit for
// a sandbox, writes the EROFS file, finds the interpreters and writes the
// record.
func (s *Store) assemble(ctx context.Context, temp string, img *Image, limits layer.Limits, fill func(*layer.Merger) error, probe Probe, progress Progress) error {
	return s.assembleWith(ctx, temp, img, limits, layer.NewMerger, fill, probe, progress)
}

// assembleWith is assemble with a merger of the caller's.
func (s *Store) assembleWith(ctx context.Context, temp string, img *Image, limits layer.Limits, merger func(*os.File, layer.Limits) *layer.Merger,
	fill func(*layer.Merger) error, probe Probe, progress Progress) (err error) {
	if limits == (layer.Limits{}) {
		limits = layer.DefaultLimits()
	}
	spool, err := namelessFile(temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	m := merger(spool, limits)
	if err := fill(m); err != nil {
		return err
	}
	root := m.Root()
	if err := prepare(root); err != nil {
		return err
	}
	if n := m.Stats().Devices; n > 0 {
		progress.say("omitted %d devices, pipes or sockets", n)
	}

	progress.say("writing the image")
	digest, size, err := writeRootfs(ctx, filepath.Join(temp, rootfsFile), root)
	if err != nil {
		return err
	}
	if img.Digest == "" {
		img.Digest = digest
	}
	img.Size = size
	img.Created = time.Now().UTC().Truncate(time.Second)

	progress.say("finding interpreters")
	rootfs := runtime.Rootfs{Image: filepath.Join(temp, rootfsFile)}
	img.Interpreters = candidates(root, img.Env["PATH"])
	if probe != nil {
		if img.Interpreters, err = examine(ctx, probe, rootfs, img.Interpreters, img.Preloads, progress); err != nil {
			return err
		}
	}
	if err := writeRecord(temp, img); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	return syncDir(temp)
}

// writeRootfs writes the EROFS file and returns its digest and size.
func writeRootfs(ctx context.Context, name string, root *erofs.Node) (digest string, size int64, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := erofs.Write(ctx, f, root); err != nil {
		return "", 0, err
	}
	if err := f.Sync(); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), size, nil
}

// namelessFile makes a file that is gone when it is closed.
func namelessFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "spool-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// environment turns an image's list of NAME=VALUE into a map; what is not of
// that form is dropped.
func environment(list []string) map[string]string {
	env := map[string]string{"PATH": defaultPath}
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && !strings.ContainsRune(kv, 0) {
			env[name] = value
		}
	}
	return env
}
