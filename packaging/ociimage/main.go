// Command ociimage writes the server's OCI image: a tar file that is an OCI
// layout and, by its manifest.json, what 'docker load' reads too.
//
// The image has no base. Its first layer is what every program expects of a root
// filesystem, the second the installed files, the third an image for sandboxes if
// one is given. The same files and SOURCE_DATE_EPOCH give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// options are the command line.
type options struct {
	root, image, version, arch, out string
	level                           int
	created                         time.Time
}

// imagesDir is where the server looks for prebuilt images.
const imagesDir = "usr/share/atoll/images"

// authorities are the certificates that the building machine trusts.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

func main() {
	var o options
	flag.StringVar(&o.root, "root", "", "folder of installed files")
	flag.StringVar(&o.image, "image", "", "image archive for sandboxes to include; none if empty")
	flag.StringVar(&o.version, "version", "devel", "version, which becomes the tag")
	flag.StringVar(&o.arch, "arch", "amd64", "architecture of the files")
	flag.IntVar(&o.level, "level", 6, "gzip level of the layers, 1 to 9")
	flag.StringVar(&o.out, "out", "", "file to write")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "ociimage:", err)
		os.Exit(1)
	}
}

func (o options) run() (err error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	o.created = time.Unix(seconds, 0).UTC()
	img, err := o.build()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(o.out), ".oci-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := o.writeLayout(temp, img); err != nil {
		return err
	}
	f, err := os.Create(o.out)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	if err := o.addTree(w, temp, "", 0o644); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(w.Close(), f.Close())
}

// build makes the image.
func (o options) build() (v1.Image, error) {
	base, err := o.layer(o.base)
	if err != nil {
		return nil, err
	}
	programs, err := o.layer(func(w *tar.Writer) error { return o.addTree(w, o.root, "", 0) })
	if err != nil {
		return nil, err
	}
	layers := []mutate.Addendum{o.addendum(base, "root filesystem"), o.addendum(programs, "atoll "+o.version)}
	if o.image != "" {
		l, err := o.layer(o.sandboxImage)
		if err != nil {
			return nil, err
		}
		layers = append(layers, o.addendum(l, "image for sandboxes"))
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.Append(img, layers...); err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = o.arch, "linux", v1.Time{Time: o.created}
	file.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/atoll"},
		Cmd:        []string{"serve"},
		WorkingDir: "/var/lib/atoll",
		Env: []string{
			"PATH=/usr/bin",
			"HOME=/var/lib/atoll",
			"ATOLL_DATA_DIR=/var/lib/atoll",
			"ATOLL_LISTEN=0.0.0.0:8080",
			// The end of process 1 is the end of every process of a container.
			"ATOLL_ON_EXIT=destroy",
		},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/atoll": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":   "atoll",
			"org.opencontainers.image.version": o.version,
		},
	}
	return mutate.ConfigFile(img, file)
}

func (o options) addendum(l v1.Layer, what string) mutate.Addendum {
	return mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "packaging/ociimage: " + what}}
}

// layer makes a gzip layer of what fill writes.
func (o options) layer(fill func(*tar.Writer) error) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := errors.Join(fill(w), w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithCompressionLevel(o.level), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// base writes what programs expect of a root filesystem.
func (o options) base(w *tar.Writer) error {
	for _, d := range []struct {
		name string
		mode int64
	}{{"etc", 0o755}, {"etc/ssl", 0o755}, {"etc/ssl/certs", 0o755}, {"proc", 0o555}, {"run", 0o755}, {"sys", 0o555}, {"tmp", 0o1777}, {"var", 0o755}, {"var/lib", 0o755}, {"var/lib/atoll", 0o700}, {"var/tmp", 0o1777}} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d.name + "/", Mode: d.mode, ModTime: o.created}); err != nil {
			return err
		}
	}
	trusted, err := os.ReadFile(authorities)
	if err != nil {
		return fmt.Errorf("certificate authorities for the image (package ca-certificates): %w", err)
	}
	files := map[string]string{
		"etc/passwd":        "root:x:0:0:root:/var/lib/atoll:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		authorities[1:]:     string(trusted),
		"etc/os-release":    "ID=atoll\nNAME=Atoll\nVERSION_ID=" + strconv.Quote(o.version) + "\n",
		"etc/nsswitch.conf": "hosts: files dns\n",
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := o.addFile(w, name, 0o644, int64(len(files[name])), strings.NewReader(files[name])); err != nil {
			return err
		}
	}
	return nil
}

// sandboxImage writes the image archive where the server looks for it.
func (o options) sandboxImage(w *tar.Writer) error {
	for dir := ""; dir != imagesDir; {
		rest := strings.TrimPrefix(strings.TrimPrefix(imagesDir, dir), "/")
		next, _, _ := strings.Cut(rest, "/")
		dir = path.Join(dir, next)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: o.created}); err != nil {
			return err
		}
	}
	f, err := os.Open(o.image)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return o.addFile(w, path.Join(imagesDir, filepath.Base(o.image)), 0o644, info.Size(), f)
}

// addTree writes a folder's files below prefix, in the order of their names. A
// mode of 0 keeps each file's own.
func (o options) addTree(w *tar.Writer, dir, prefix string, mode int64) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := path.Join(prefix, filepath.ToSlash(rel))
		if d.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: o.created})
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", p)
		}
		m := mode
		if m == 0 {
			m = int64(info.Mode().Perm())
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		return o.addFile(w, name, m, info.Size(), f)
	})
}

func (o options) addFile(w *tar.Writer, name string, mode, size int64, r io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size, ModTime: o.created}); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	return err
}

// writeLayout writes the OCI layout and docker's manifest.json into a folder.
func (o options) writeLayout(dir string, img v1.Image) error {
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = p.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: o.arch}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version}))
	if err != nil {
		return err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }
	docker := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{Config: blob(manifest.Config.Digest), RepoTags: []string{"atoll:" + o.version}}
	for _, l := range manifest.Layers {
		docker.Layers = append(docker.Layers, blob(l.Digest))
	}
	data, err := json.Marshal([]any{docker})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), append(data, '\n'), 0o644)
}
