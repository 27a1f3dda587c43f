package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Image is an image of the store, as far as the benchmarks need to know.
type Image struct {
	Name         string
	Digest       string
	Env          map[string]string
	Preloads     []string
	Interpreters []Interpreter
	File         string // path of the EROFS file

	record map[string]json.RawMessage // all of image.json
}

// Interpreter is a program of the image.
type Interpreter struct {
	Language execution.Language
	Path     string
	Version  string
}

const (
	recordFile = "image.json"
	rootfsFile = "rootfs.erofs"
)

func openImage(dir string) (*Image, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no image at %s; 'make run' or 'bin/atoll image build' makes one, and -images names another folder", dir)
	}
	if err != nil {
		return nil, err
	}
	i := &Image{File: filepath.Join(dir, rootfsFile)}
	if err := errors.Join(json.Unmarshal(data, i), json.Unmarshal(data, &i.record)); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	if _, err := os.Stat(i.File); err != nil {
		return nil, fmt.Errorf("the image %s is not an EROFS file, so the baselines cannot run from it: %w", i.Name, err)
	}
	i.File, err = filepath.Abs(i.File)
	return i, err
}

// Interpreter returns the path of a language's interpreter, "" when the image
// has none.
func (i *Image) Interpreter(l execution.Language) string {
	for _, in := range i.Interpreters {
		if in.Language == l {
			return in.Path
		}
	}
	return ""
}

// String names the image and its interpreters' versions.
func (i *Image) String() string {
	parts := []string{i.Name}
	for _, in := range i.Interpreters {
		parts = append(parts, string(in.Language)+" "+in.Version)
	}
	digest, _, _ := strings.Cut(strings.TrimPrefix(i.Digest, "sha256:"), " ")
	return fmt.Sprintf("%s (%.12s)", strings.Join(parts, ", "), digest)
}

// Variant says what a copy of the image offers; nil slices leave it as it is.
type Variant struct {
	Languages []execution.Language
	Preloads  []string
}

// copyTo puts the image into a store of its own, its file linked and not
// copied.
func (i *Image) copyTo(store string, v Variant) error {
	dir := filepath.Join(store, i.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	record := map[string]json.RawMessage{}
	for k, raw := range i.record {
		record[k] = raw
	}
	if v.Preloads != nil {
		raw, err := json.Marshal(v.Preloads)
		if err != nil {
			return err
		}
		record["preloads"] = raw
	}
	if v.Languages != nil {
		var all []map[string]any
		if err := json.Unmarshal(record["interpreters"], &all); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(in map[string]any) bool {
			language, _ := in["language"].(string)
			return !slices.Contains(v.Languages, execution.Language(language))
		})
		raw, err := json.Marshal(all)
		if err != nil {
			return err
		}
		record["interpreters"] = raw
	}
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, recordFile), data, 0o644); err != nil {
		return err
	}
	return os.Symlink(i.File, filepath.Join(dir, rootfsFile))
}
