package image

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// programs are the names an interpreter goes by, the preferred first.
var programs = map[execution.Language][]string{
	execution.Python: {"python3", "python"},
	execution.Node:   {"node", "nodejs"},
	execution.Bash:   {"bash"},
}

// candidates finds interpreters on searchPath, inside the image, without
// running anything.
func candidates(root *erofs.Node, searchPath string) []Interpreter {
	return search(searchPath, func(p string) bool {
		n, _, err := tree.Lookup(root, p)
		return err == nil && n.IsRegular() && n.Mode&0o111 != 0
	})
}

// search looks for each language's programs in the folders of searchPath.
func search(searchPath string, executable func(p string) bool) []Interpreter {
	var found []Interpreter
	for _, language := range execution.Languages {
		if p := first(programs[language], searchPath, executable); p != "" {
			found = append(found, Interpreter{Language: language, Path: p})
		}
	}
	return found
}

func first(names []string, searchPath string, executable func(p string) bool) string {
	for _, name := range names {
		for dir := range strings.SplitSeq(searchPath, ":") {
			if !path.IsAbs(dir) {
				continue
			}
			if p := path.Join(dir, name); executable(p) {
				return p
			}
		}
	}
	return ""
}

// questions make an interpreter print its version, and Python its SiteDir, in
// one run. A folder of site packages that is missing is not on sys.path.
var questions = map[execution.Language][]string{
	execution.Python: {"-I", "-c", "import os, site, sys\nprint('.'.join(map(str, sys.version_info[:3])))\nd = site.getsitepackages()\nprint(([p for p in d if os.path.isdir(p)] or d)[-1])"},
	execution.Node:   {"-p", "process.versions.node"},
	execution.Bash:   {"-c", "echo $BASH_VERSION"},
}

// What a hostile image's interpreter prints ends up in records and listings.
var (
	versionPattern = regexp.MustCompile(`^[0-9][0-9A-Za-z.()+_-]{0,63}$`)
	sitePattern    = regexp.MustCompile(`^/[0-9A-Za-z./+_-]+$`)
	modulePattern  = regexp.MustCompile(`^[A-Za-z_][0-9A-Za-z_]*(\.[A-Za-z_][0-9A-Za-z_]*)*$`)
)

// examine runs each candidate. One that does not run, or is a Python 2, is
// left out; a preload that cannot be imported is an Invalid fault.Error.
func examine(ctx context.Context, probe Probe, rootfs runtime.Rootfs, found []Interpreter, preloads []string, progress Progress) ([]Interpreter, error) {
	var good []Interpreter
	for _, in := range found {
		out, err := probe(ctx, rootfs, append([]string{in.Path}, questions[in.Language]...))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			err = in.learn(string(out))
		}
		if err != nil {
			progress.say("left out %s: %v", in.Path, err)
			continue
		}
		if in.Language == execution.Python && len(preloads) > 0 {
			if _, err := probe(ctx, rootfs, []string{in.Path, "-c", "import " + strings.Join(preloads, ", ")}); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, fmt.Sprintf("the image's Python cannot import %s", strings.Join(preloads, ", ")))
			}
		}
		good = append(good, in)
	}
	return good, nil
}

// learn takes over what the interpreter said of itself.
func (in *Interpreter) learn(out string) error {
	version, rest, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if version = strings.TrimSpace(version); !versionPattern.MatchString(version) {
		return fmt.Errorf("its version is not understood: %.80q", version)
	}
	if in.Language == execution.Python {
		site := strings.TrimSpace(rest)
		switch {
		case !strings.HasPrefix(version, "3."):
			return fmt.Errorf("it is Python %s", version)
		case len(site) > 1024 || !sitePattern.MatchString(site) || path.Clean(site) != site:
			return fmt.Errorf("its folder of site packages is not understood: %.80q", site)
		}
		in.SiteDir = site
	}
	in.Version = version
	return nil
}

func checkPreloads(modules []string) error {
	for _, m := range modules {
		if !modulePattern.MatchString(m) {
			return fault.New(fault.Invalid, "the preload %q is not the name of a Python module", m)
		}
	}
	return nil
}
