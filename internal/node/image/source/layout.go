package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// maxNesting bounds indexes within indexes.
const maxNesting = 4

// openLayout reads an OCI image layout.
func openLayout(f files) (*Image, error) {
	data, err := readFile(f, "index.json")
	if err != nil {
		return nil, err
	}
	desc, err := choose(f, data, 0)
	if err != nil {
		return nil, err
	}
	data, err = readBlob(f, desc.Digest, "manifest")
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image's manifest cannot be read")
	}
	data, err = readBlob(f, manifest.Config.Digest, "configuration")
	if err != nil {
		return nil, err
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image's configuration cannot be read")
	}
	img := &Image{Digest: desc.Digest.String(), Config: config}
	for _, l := range manifest.Layers {
		if err := checkLayerType(l.MediaType); err != nil {
			return nil, err
		}
		name, err := blobName(l.Digest)
		if err != nil {
			return nil, err
		}
		img.Layers = append(img.Layers, Layer{Size: l.Size, stored: l.Digest.Hex, open: opener(f, name)})
	}
	return img, nil
}

// choose picks the manifest for this machine out of an index.
func choose(f files, index []byte, depth int) (v1.Descriptor, error) {
	none := v1.Descriptor{}
	if depth == maxNesting {
		return none, fault.New(fault.Invalid, "the image's index is nested too deep")
	}
	m, err := v1.ParseIndexManifest(bytes.NewReader(index))
	if err != nil {
		return none, fault.Wrap(fault.Invalid, err, "the image's index cannot be read")
	}
	var fit []v1.Descriptor
	for _, d := range m.Manifests {
		if !d.MediaType.IsImage() && !d.MediaType.IsIndex() {
			continue
		}
		if p := d.Platform; p != nil && (p.OS != "linux" || p.Architecture != runtime.GOARCH) {
			continue
		}
		fit = append(fit, d)
	}
	switch {
	case len(fit) == 0:
		return none, fault.New(fault.Invalid, "the layout holds no image for linux/%s", runtime.GOARCH)
	case len(fit) > 1 && depth == 0:
		return none, fault.New(fault.Invalid, "the layout holds %d images; one is wanted", len(fit))
	case fit[0].MediaType.IsImage():
		return fit[0], nil
	}
	data, err := readBlob(f, fit[0].Digest, "index")
	if err != nil {
		return none, err
	}
	return choose(f, data, depth+1)
}

// blobName is where a layout keeps a blob.
func blobName(h v1.Hash) (string, error) {
	if h.Algorithm != "sha256" || len(h.Hex) != 64 {
		return "", fault.New(fault.Invalid, "the image uses the unknown digest %q", h)
	}
	return "blobs/sha256/" + h.Hex, nil
}

func readBlob(f files, h v1.Hash, what string) ([]byte, error) {
	name, err := blobName(h)
	if err != nil {
		return nil, err
	}
	data, err := readFile(f, name)
	if err != nil {
		return nil, err
	}
	return data, verify(data, h, what)
}

// opener reads a layer from a file of the layout or tarball.
func opener(f files, name string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) {
		r, _, err := f.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(fault.Invalid, err, fmt.Sprintf("the image lacks its layer %s", name))
		}
		return r, err
	}
}

// openDocker reads what docker save wrote.
func openDocker(f files) (*Image, error) {
	data, err := readFile(f, "manifest.json")
	if err != nil {
		return nil, err
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(data, &images); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the tarball's manifest.json cannot be read")
	}
	if len(images) != 1 {
		return nil, fault.New(fault.Invalid, "the tarball holds %d images; save one", len(images))
	}
	data, err = readFile(f, images[0].Config)
	if err != nil {
		return nil, err
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image's configuration cannot be read")
	}
	digest, _, err := v1.SHA256(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	img := &Image{Digest: digest.String(), Config: config}
	for _, name := range images[0].Layers {
		img.Layers = append(img.Layers, Layer{open: opener(f, name)})
	}
	return img, nil
}
