// Command patch copies those packages of gVisor of which the kernel is built, and
// makes in the copy the changes of changes.go. Beside the copy it writes a go.mod
// by which go build takes it instead of the module. A text that is not there as
// often as it must be is an error, so that a newer gVisor is looked at before it
// is built.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "gvisor.dev/gvisor"

func main() {
	out := flag.String("o", "", "folder to write to; FOLDER.mod and FOLDER.sum go beside it")
	flag.Parse()
	if err := write(*out); err != nil {
		log.Fatal(err)
	}
}

func write(folder string) error {
	files, err := sources()
	if err != nil {
		return err
	}
	for _, c := range slices.Concat(changes, fileChanges) {
		text, ok := files[c.file]
		if n := bytes.Count(text, []byte(c.old)); !ok || n != 1 {
			return fmt.Errorf("%s has %d times, not once: %q", c.file, n, c.old)
		}
		files[c.file] = bytes.Replace(text, []byte(c.old), []byte(c.new), 1)
	}
	for file, name := range added {
		text, err := texts.ReadFile(name)
		if err != nil {
			return err
		}
		files[file] = text
	}
	if err := keepOnly(folder, files); err != nil {
		return err
	}
	if err := modFile(folder); err != nil {
		return err
	}
	return generate(folder)
}

// generate has the copy write the file of what is built ahead. What it compiles for that
// is compiled as the runtime is, so that it is compiled once.
func generate(folder string) error {
	text, err := run("go", "run", "-trimpath", "-tags=patched", "-modfile", folder+".mod", "./gen/filters")
	if err != nil {
		return err
	}
	return keep(filepath.Join(folder, generatedFile), text)
}

// sources are the files of gVisor's packages that are linked, by their path in the module.
func sources() (map[string][]byte, error) {
	list, err := run("go", "list", "-deps", "-json=Dir,ImportPath,EmbedFiles,Module", ".", "./sentry")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for dec := json.NewDecoder(bytes.NewReader(list)); ; {
		var p struct {
			Dir, ImportPath string
			EmbedFiles      []string
			Module          *struct{ Path, Dir string }
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module == nil || p.Module.Path != module {
			continue
		}
		names := p.EmbedFiles
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), "_test.go") {
				names = append(names, e.Name())
			}
		}
		for _, name := range append(names, rel(p.Dir, p.Module.Dir, "go.mod")) {
			path := filepath.Join(p.Dir, name)
			in, err := filepath.Rel(p.Module.Dir, path)
			if err != nil {
				return nil, err
			}
			if files[in], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// rel is the path of a file of the module as seen from one of its folders.
func rel(dir, root, name string) string {
	r, err := filepath.Rel(dir, filepath.Join(root, name))
	if err != nil {
		log.Fatal(err) // both are absolute
	}
	return r
}

// keepOnly makes the folder hold these files and no others. What is right already stays
// as it is, with its time.
func keepOnly(folder string, files map[string][]byte) error {
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		in, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if _, ok := files[in]; !ok {
			return os.Remove(path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for name, text := range files {
		if err := keep(filepath.Join(folder, name), text); err != nil {
			return err
		}
	}
	return nil
}

// modFile writes the go.mod and go.sum of this module with the copy in gVisor's place.
func modFile(folder string) error {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	to, err := filepath.Rel(here, abs)
	if err != nil {
		return err
	}
	mod = slices.Concat(mod, fmt.Appendf(nil, "\nreplace %s => %s\n", module, to))
	return errors.Join(keep(folder+".mod", mod), keep(folder+".sum", sum))
}

// keep writes a file, unless it holds the text already.
func keep(path string, text []byte) error {
	if b, err := os.ReadFile(path); err == nil && bytes.Equal(b, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

func run(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return out, nil
}
