// Package image keeps the root filesystems that sandboxes start from.
//
// A Store is a folder of images. Each is imported once, from an OCI image or
// from Debian's packages, into one read-only EROFS file, together with what a
// pool needs to know of it: its environment and its interpreters. An image
// never changes; it is there whole or not at all.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Default and HostName are the names of the two images that Atoll makes itself.
const (
	Default  = requirement.Default
	HostName = "host"
)

// Image is one root filesystem and what is known of it.
type Image struct {
	Name    string
	Source  string   // what it was imported from, as asked for
	Recipe  string   // of the default image: debian.Recipe when it was built
	With    []string // extras that it was built with
	Digest  string   // "sha256:…" of the OCI manifest or configuration, or of the EROFS file
	Created time.Time
	Size    int64 // bytes of the EROFS file

	Rootfs       runtime.Rootfs
	Env          map[string]string // a program's environment starts from this
	Preloads     []string          // Python modules worth importing ahead
	Interpreters []Interpreter
}

// Interpreter is a program of the image that runs one language.
type Interpreter struct {
	Language execution.Language
	Path     string // absolute, as found on the image's PATH
	Version  string // such as "3.14.2"; "" when it could not be run
	SiteDir  string // Python: the last folder of site.getsitepackages() that exists
}

// Interpreter returns the image's interpreter of a language.
func (i *Image) Interpreter(l execution.Language) (Interpreter, bool) {
	for _, in := range i.Interpreters {
		if in.Language == l {
			return in, true
		}
	}
	return Interpreter{}, false
}

// Probe runs a program of a root filesystem, as the unprivileged user and
// without network, and returns what it wrote to stdout.
type Probe func(ctx context.Context, rootfs runtime.Rootfs, argv []string) (stdout []byte, err error)

// Report says how far a long job is. Done and Total are bytes; Total is 0
// where it cannot be known.
type Report struct {
	Step        string
	Done, Total int64
}

// Progress hears of a long job, from one goroutine at a time. It may be nil.
type Progress func(Report)

func (p Progress) say(format string, args ...any) {
	if p != nil {
		p(Report{Step: fmt.Sprintf(format, args...)})
	}
}

// namePattern keeps names fit for paths, URLs and labels.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// CheckName reports, as an Invalid fault.Error, why name cannot be an image's.
func CheckName(name string) error {
	if requirement.IsVariant(name) {
		return nil
	}
	if !namePattern.MatchString(name) {
		return fault.New(fault.Invalid, "the image name %q is not allowed: use 1 to 63 lower-case letters, digits, dots, dashes and underscores, beginning with a letter or digit", name)
	}
	return nil
}

// howToGet says how the operator gets a missing image.
func howToGet(name string) string {
	if requirement.IsVariant(name) {
		return "build it with '" + requirement.VariantCommand(name) + "'"
	}
	return "import it with 'atoll image import'"
}

// Missing rejects an environment whose image is not on this server.
func Missing(name string) error {
	return fault.New(fault.Invalid, "this server has no image %q; %s, or name another in the environment", name, howToGet(name))
}

// errReserved rejects the name of the machine's own image.
var errReserved = fault.New(fault.Invalid, "the name %q is kept for this machine's own files", HostName)

func unknownImage(name string) error {
	return fault.New(fault.NotFound, "there is no image %q", name)
}

const (
	rootfsFile = "rootfs.erofs"
	recordFile = "image.json"
	treeDir    = "tree"
)

// record is image.json.
type record struct {
	Version      int                 `json:"version"`
	Name         string              `json:"name"`
	Source       string              `json:"source"`
	Recipe       string              `json:"recipe,omitempty"`
	With         []string            `json:"with,omitempty"`
	Digest       string              `json:"digest"`
	Created      time.Time           `json:"created"`
	Size         int64               `json:"size"`
	Env          map[string]string   `json:"env,omitempty"`
	Preloads     []string            `json:"preloads,omitempty"`
	Interpreters []interpreterRecord `json:"interpreters"`
	Binds        []bindRecord        `json:"binds,omitempty"` // only the host image has them
}

type interpreterRecord struct {
	Language string `json:"language"`
	Path     string `json:"path"`
	Version  string `json:"version,omitempty"`
	SiteDir  string `json:"site_dir,omitempty"`
}

type bindRecord struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

const recordVersion = 1

// recordOf is the record of an image.
func recordOf(img *Image) record {
	r := record{
		Version: recordVersion, Name: img.Name, Source: img.Source, Recipe: img.Recipe, With: img.With, Digest: img.Digest,
		Created: img.Created, Size: img.Size, Env: img.Env, Preloads: img.Preloads,
		Interpreters: []interpreterRecord{},
	}
	for _, in := range img.Interpreters {
		r.Interpreters = append(r.Interpreters, interpreterRecord{string(in.Language), in.Path, in.Version, in.SiteDir})
	}
	for _, b := range img.Rootfs.Binds {
		r.Binds = append(r.Binds, bindRecord(b))
	}
	return r
}

// image is what a record says, all but where the root filesystem is.
func (r *record) image() *Image {
	img := &Image{
		Name: r.Name, Source: r.Source, Recipe: r.Recipe, With: r.With, Digest: r.Digest, Created: r.Created,
		Size: r.Size, Env: r.Env, Preloads: r.Preloads,
	}
	for _, in := range r.Interpreters {
		if !language.Known(language.Name(in.Language)) {
			continue // of a later version
		}
		img.Interpreters = append(img.Interpreters, Interpreter{execution.Language(in.Language), in.Path, in.Version, in.SiteDir})
	}
	return img
}

// writeRecord writes an image's record into its folder.
func writeRecord(dir string, img *Image) error {
	r := recordOf(img)
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, recordFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// readRecord reads the image in folder dir.
func readRecord(dir string) (*Image, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	if r.Version != recordVersion {
		return nil, fault.New(fault.Conflict, "the image %s was written by another version of Atoll; remove and import it again", r.Name)
	}
	img := r.image()
	tree := filepath.Join(dir, treeDir)
	if _, err := os.Stat(tree); err == nil {
		img.Rootfs.Tree = tree
		for _, b := range r.Binds {
			img.Rootfs.Binds = append(img.Rootfs.Binds, runtime.Bind(b))
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		img.Rootfs.Image = filepath.Join(dir, rootfsFile)
	} else {
		return nil, err
	}
	return img, nil
}
