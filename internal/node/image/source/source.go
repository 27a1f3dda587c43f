// Package source opens OCI images where they lie: in a registry, in an OCI
// layout (a folder or a tar file), or in a tarball that docker save wrote.
//
// Whatever it hands out was checked against its digest: manifests and
// configurations before they are used, layers when their end is read.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// metaLimit bounds a manifest or configuration, bytes.
const metaLimit = 8 << 20

// Options change how an image is looked for.
type Options struct {
	// PlainHTTP allows a registry without TLS that is not on this machine's
	// loopback interface.
	PlainHTTP bool
	// Reach is where a registry may lead, by redirects and for its tokens, besides
	// itself and public addresses; nil for anywhere.
	Reach *outbound.List
	// Temp is a folder for what must be unpacked first; "" is the system's.
	Temp string
}

// Image is an image that was found and whose layers can be read. Close it.
type Image struct {
	Reference string // as asked for
	Digest    string // "sha256:…" of the manifest; of the configuration in a docker save tarball
	Config    *v1.ConfigFile
	Layers    []Layer // the lowest first

	close func() error
}

// Close lets go of files and connections.
func (i *Image) Close() error {
	if i.close == nil {
		return nil
	}
	return i.close()
}

// Open finds the image for this machine's architecture. ref is a path (it
// begins with "/", "./" or "../", or with "oci:" or "docker-archive:", or it
// names an OCI layout or a .tar file that is there) or else a registry's
// reference ("docker://" before it makes it one in any case).
func Open(ctx context.Context, ref string, opts Options) (*Image, error) {
	var (
		img *Image
		err error
	)
	if p, ok := asPath(ref); ok {
		img, err = openPath(ctx, p, opts)
	} else {
		img, err = openRegistry(ctx, strings.TrimPrefix(ref, "docker://"), opts)
	}
	if err != nil {
		return nil, err
	}
	img.Reference = ref
	if err := img.check(); err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return img, nil
}

// asPath tells whether ref names a local file or folder.
func asPath(ref string) (string, bool) {
	for _, prefix := range []string{"oci:", "oci-archive:", "docker-archive:"} {
		if p, ok := strings.CutPrefix(ref, prefix); ok {
			return p, true
		}
	}
	for _, prefix := range []string{"/", "./", "../"} {
		if strings.HasPrefix(ref, prefix) {
			return ref, true
		}
	}
	info, err := os.Stat(ref)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		_, err := os.Stat(ref + "/index.json")
		return ref, err == nil
	}
	return ref, strings.HasSuffix(ref, ".tar") || strings.HasSuffix(ref, ".tar.gz") || strings.HasSuffix(ref, ".tgz")
}

// check looks at what every kind of source must agree on.
func (i *Image) check() error {
	c := i.Config
	if c.OS != "" && c.OS != "linux" || c.Architecture != "" && c.Architecture != runtime.GOARCH {
		return fault.New(fault.Invalid, "the image is for %s/%s; this machine runs linux/%s", c.OS, c.Architecture, runtime.GOARCH)
	}
	if len(i.Layers) != len(c.RootFS.DiffIDs) {
		return fault.New(fault.Invalid, "the image has %d layers but its configuration lists %d", len(i.Layers), len(c.RootFS.DiffIDs))
	}
	for k, id := range c.RootFS.DiffIDs {
		if id.Algorithm != "sha256" {
			return fault.New(fault.Invalid, "the image's layer %d has a digest of the unknown kind %q", k, id.Algorithm)
		}
		i.Layers[k].content = id.Hex
	}
	return nil
}

// verify checks data against a digest.
func verify(data []byte, want v1.Hash, what string) error {
	sum := sha256.Sum256(data)
	if want.Algorithm != "sha256" || want.Hex != hex.EncodeToString(sum[:]) {
		return fault.New(fault.Invalid, "the image's %s does not match its digest", what)
	}
	return nil
}

// readMeta reads a manifest or configuration, at most metaLimit bytes.
func readMeta(r io.Reader, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, metaLimit+1))
	if err != nil {
		return nil, err
	}
	if len(data) > metaLimit {
		return nil, fault.New(fault.Invalid, "the image's %s is larger than %d bytes", what, metaLimit)
	}
	return data, nil
}
