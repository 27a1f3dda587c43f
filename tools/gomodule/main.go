// Command gomodule writes the client library for Go as a module proxy serves it, below a folder: its
// list of versions, and the .info, .mod and .zip of one. The same commit gives the same bytes.
//
//	go run -C tools ./gomodule FOLDER
//
// GOPROXY=file://FOLDER then finds it, and GONOSUMDB says that it is in no public database.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root   = ".." // of the repository
	subdir = "sdk/go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gomodule FOLDER")
		os.Exit(2)
	}
	made, err := write(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gomodule:", err)
		os.Exit(1)
	}
	fmt.Println(made)
}

// write writes the module of the last commit into folder, and returns its zip's name.
func write(folder string) (name string, err error) {
	of, err := library()
	if err != nil {
		return "", err
	}
	text, err := git("show", "HEAD:"+subdir+"/go.mod")
	if err != nil {
		return "", err
	}
	if of.Path = modfile.ModulePath(text); of.Path == "" {
		return "", fmt.Errorf("%s/go.mod names no module", subdir)
	}
	escaped, err := module.EscapePath(of.Path)
	if err != nil {
		return "", err
	}
	at := filepath.Join(folder, escaped, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	date, err := git("log", "-1", "--format=%cI")
	if err != nil {
		return "", err
	}
	when, err := time.Parse(time.RFC3339, strings.TrimSpace(string(date)))
	if err != nil {
		return "", err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{of.Version, when.UTC()})
	if err != nil {
		return "", err
	}
	for file, content := range map[string][]byte{"list": []byte(of.Version + "\n"), of.Version + ".info": info, of.Version + ".mod": text} {
		if err := os.WriteFile(filepath.Join(at, file), content, 0o644); err != nil {
			return "", err
		}
	}
	f, err := os.Create(filepath.Join(at, of.Version+".zip"))
	if err != nil {
		return "", err
	}
	err = zip.CreateFromVCS(f, of, root, "HEAD", subdir)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return f.Name(), err
}

// library is the module with the version of the client libraries, which the package for npm has.
func library() (of module.Version, err error) {
	text, err := git("show", "HEAD:sdk/typescript/package.json")
	if err != nil {
		return of, err
	}
	var published struct{ Version string }
	if err := json.Unmarshal(text, &published); err != nil {
		return of, err
	}
	of.Version = "v" + published.Version
	return of, nil
}

func git(args ...string) ([]byte, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}
