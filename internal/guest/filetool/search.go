package filetool

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

// Bounds of a search.
const (
	maxPattern = 1000    // bytes
	maxBraces  = 10      // each {a,b} doubles the work
	maxEntries = 200_000 // files and folders that are looked at
	maxLine    = 500     // bytes of a line that is shown
)

// shown is a path as it is given to the model: in one line.
func shown(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return strconv.Quote(path)
	}
	return path
}

func checkGlob(pattern string) error {
	if len(pattern) > maxPattern || strings.Count(pattern, "{") > maxBraces {
		return refuse("the pattern must have at most %d characters and %d braces", maxPattern, maxBraces)
	}
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return refuse("%q is no glob pattern: a bracket, a brace or a backslash is not followed by what belongs to it", pattern)
	}
	return nil
}

// folder is the one that a search begins in.
func folder(path string) (string, error) {
	if path == "" {
		path = "."
	}
	_, err := os.Stat(path)
	return path, err
}

func glob(c *filetool.Call) (*filetool.Answer, error) {
	if err := checkGlob(c.Pattern); err != nil {
		return nil, err
	}
	root, err := folder(c.Path)
	if err != nil {
		return nil, err
	}
	base, pattern := doublestar.SplitPattern(filepath.ToSlash(c.Pattern))
	if filepath.IsAbs(base) {
		root = base
	} else {
		root = filepath.Join(root, base)
	}
	a := &filetool.Answer{}
	var found []string
	size, seen := 0, 0
	err = doublestar.GlobWalk(os.DirFS(root), pattern, func(path string, d fs.DirEntry) error {
		at := shown(filepath.Join(root, path))
		seen++
		if len(found) == filetool.MaxMatches || size+len(at)+1 > filetool.MaxPaths || seen > maxEntries {
			a.Truncated = true
			return errEnough
		}
		if d.IsDir() {
			at += "/"
		}
		size += len(at) + 1
		found = append(found, at)
		return nil
	}, doublestar.WithNoFollow())
	if err != nil && !errors.Is(err, errEnough) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(found)
	a.Count, a.Paths = int64(len(found)), int64(len(found))
	for _, path := range found {
		a.Body = append(append(a.Body, path...), '\n')
	}
	return a, nil
}

var errEnough = errors.New("there is enough")

// grepper looks for a regular expression in files.
type grepper struct {
	pattern *regexp.Regexp
	answer  *filetool.Answer
	paths   []byte
	text    bytes.Buffer
}

func grep(c *filetool.Call) (*filetool.Answer, error) {
	if c.Pattern == "" || len(c.Pattern) > maxPattern {
		return nil, refuse("pattern must have 1 to %d characters", maxPattern)
	}
	expression := c.Pattern
	if c.Fold {
		expression = "(?i)" + expression
	}
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return nil, refuse("pattern is no regular expression of RE2: %v", err)
	}
	if c.Include != "" {
		if err := checkGlob(c.Include); err != nil {
			return nil, err
		}
	}
	root, err := folder(c.Path)
	if err != nil {
		return nil, err
	}
	g := &grepper{pattern: pattern, answer: &filetool.Answer{}}
	seen := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxEntries {
			g.answer.Truncated = true
			return fs.SkipAll
		}
		switch {
		case err != nil && path == root:
			return err
		case err != nil: // closed to the user
			return nil
		case d.IsDir() && path != root && (d.Name() == ".git" || path == "/proc" || path == "/sys" || path == filetool.Folder):
			return fs.SkipDir
		case !d.Type().IsRegular() && path != root:
			return nil
		case c.Include != "" && !included(c.Include, root, path):
			return nil
		}
		return g.file(path)
	})
	if err != nil {
		return nil, err
	}
	a := g.answer
	a.Body = append(g.paths, g.text.Bytes()...)
	return a, nil
}

// included reports whether a file matches a glob: its name, or its path below root if the
// glob has a slash.
func included(glob, root, path string) bool {
	name := filepath.Base(path)
	if strings.Contains(glob, "/") {
		if below, err := filepath.Rel(root, path); err == nil {
			name = below
		}
	}
	ok, _ := doublestar.Match(glob, name)
	return ok
}

// file looks through one file.
func (g *grepper) file(path string) error {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return nil //nolint:nilerr // it is gone, or a folder
	}
	f, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // closed to the user
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if head, _ := in.Peek(sniffed); binary(head) {
		return nil
	}
	a, first := g.answer, true
	for line := int64(1); ; line++ {
		text, err := in.ReadSlice('\n')
		for err == bufio.ErrBufferFull { // of so long a line the beginning is looked at
			text = slices.Clone(text)
			_, err = in.ReadSlice('\n')
		}
		if len(text) > 0 && g.pattern.Match(bytes.TrimRight(text, "\r\n")) {
			if a.Count == filetool.MaxMatches || !g.add(path, line, text, first) {
				a.Truncated = true
				return fs.SkipAll
			}
			first = false
			a.Count++
		}
		if err != nil {
			return nil // its end, or it cannot be read
		}
	}
}

// add adds a line that matches; false says that there is no room.
func (g *grepper) add(path string, line int64, text []byte, first bool) bool {
	text = bytes.TrimRight(text, "\r\n")
	if len(text) > maxLine {
		text = append(slices.Clone(text[:maxLine]), "…"...)
	}
	name := shown(path)
	if g.text.Len()+len(name)+len(text)+24 > filetool.MaxText {
		return false
	}
	if first {
		if g.answer.Paths == filetool.MaxMatches || len(g.paths)+len(name)+1 > filetool.MaxPaths {
			return false
		}
		g.answer.Paths++
		g.paths = append(append(g.paths, name...), '\n')
		g.text.WriteString(name + "\n")
	}
	g.text.WriteString(strconv.FormatInt(line, 10) + ":")
	g.text.Write(text)
	g.text.WriteByte('\n')
	return true
}
