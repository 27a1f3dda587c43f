package image

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

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
	for _, l := range language.All() {
		if p := first(l.Programs, searchPath, executable); p != "" {
			found = append(found, Interpreter{Language: l.Name, Path: p})
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

// What a hostile image's interpreter prints ends up in records and listings.
var (
	versionPattern = regexp.MustCompile(`^[0-9][0-9A-Za-z.()+_-]{0,63}$`)
	sitePattern    = regexp.MustCompile(`^/[0-9A-Za-z./+_-]+$`)
	modulePattern  = regexp.MustCompile(`^[A-Za-z_][0-9A-Za-z_]*(\.[A-Za-z_][0-9A-Za-z_]*)*$`)
)

// examine runs each candidate. One that does not run, or has another major version than
// its language's, such as Python 2, is left out; a preload that cannot be imported is an Invalid fault.Error.
func examine(ctx context.Context, probe Probe, rootfs runtime.Rootfs, found []Interpreter, preloads []string, progress Progress) ([]Interpreter, error) {
	var good []Interpreter
	for _, in := range found {
		l := language.Get(in.Language)
		out, err := probe(ctx, rootfs, append([]string{in.Path}, l.Version...))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			err = in.learn(l, string(out))
		}
		if err != nil {
			progress.say("omitted %s: %v", in.Path, err)
			continue
		}
		if l.Import != nil && len(preloads) > 0 {
			modules := strings.Join(preloads, ", ")
			argv := append([]string{in.Path}, l.Import...)
			argv[len(argv)-1] += modules
			if _, err := probe(ctx, rootfs, argv); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, fmt.Sprintf("the image's %s cannot import %s", l.Title, modules))
			}
		}
		good = append(good, in)
	}
	return good, nil
}

// learn takes over what the interpreter said of itself.
func (in *Interpreter) learn(l *language.Language, out string) error {
	version, rest, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if version = strings.TrimSpace(version); !versionPattern.MatchString(version) {
		return fmt.Errorf("its version is not understood: %.80q", version)
	}
	if l.Major != 0 && !strings.HasPrefix(version, strconv.Itoa(l.Major)+".") {
		return fmt.Errorf("it is %s %s", l.Title, version)
	}
	if l.Site {
		site := strings.TrimSpace(rest)
		switch {
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
