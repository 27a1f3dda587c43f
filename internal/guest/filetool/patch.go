package filetool

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

// maxPatched bounds the files that a patch names, and maxPatchedBytes what they have
// together.
const (
	maxPatched      = 200
	maxPatchedBytes = 32 << 20
)

// change is what a patch does to one file.
type change struct {
	verb   byte // 'A', 'M' or 'D'
	path   string
	to     string // of a file that is moved; else ""
	add    []string
	chunks []chunk

	was  []byte // of a file that was there
	mode os.FileMode
	is   []byte
}

// chunk replaces lines with others.
type chunk struct {
	after    []string // lines before it that say where it is, each after the one before
	old, new []string
	atEnd    bool // of the file
	line     int  // of the patch
}

// patch makes all changes of a patch, or none.
func patch(c *filetool.Call) (*filetool.Answer, error) {
	changes, err := parsePatch(c.Patch)
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range changes {
		if err := changes[i].plan(); err != nil {
			return nil, err
		}
		if total += len(changes[i].was) + len(changes[i].is); total > maxPatchedBytes {
			return nil, refuse("the files of the patch have more than %d MiB", maxPatchedBytes>>20)
		}
	}
	for i := range changes {
		if err := changes[i].do(); err != nil {
			for j := i; j >= 0; j-- {
				changes[j].undo()
			}
			return nil, err
		}
	}
	a := &filetool.Answer{}
	for i := range changes {
		d := &changes[i]
		path := d.path
		if d.to != "" {
			path = d.to
			line(a, 'D', d.path)
		}
		verb := d.verb
		if d.to != "" {
			verb = 'A'
		}
		line(a, verb, path)
	}
	return a, nil
}

func line(a *filetool.Answer, verb byte, path string) {
	a.Body = append(append(append(a.Body, verb, ' '), shown(path)...), '\n')
	a.Paths++
}

// plan finds out what the file is going to be.
func (d *change) plan() error {
	st, err := os.Stat(d.path)
	switch {
	case d.verb == 'A':
		if err == nil {
			return refuse("%s is there already; use *** Update File", d.path)
		}
		d.is = []byte(joined(d.add))
		return nil
	case err != nil:
		return err
	}
	if d.was, err = content(d.path); err != nil {
		return err
	}
	d.mode = st.Mode().Perm()
	if d.to != "" {
		if _, err := os.Lstat(d.to); err == nil {
			return refuse("%s cannot be moved to %s, which is there already", d.path, d.to)
		}
	}
	if d.verb == 'M' {
		text, err := apply(d.path, string(d.was), d.chunks)
		d.is = []byte(text)
		return err
	}
	return nil
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func (d *change) do() error {
	switch {
	case d.verb == 'D':
		return os.Remove(d.path)
	case d.to != "":
		if _, err := put(d.to, d.is); err != nil {
			return err
		}
		if err := os.Chmod(d.to, d.mode); err != nil {
			return err
		}
		return os.Remove(d.path)
	}
	_, err := put(d.path, d.is)
	return err
}

// undo leaves a file as it was, as well as it can.
func (d *change) undo() {
	if d.verb == 'A' {
		_ = os.Remove(d.path)
		return
	}
	if d.to != "" {
		_ = os.Remove(d.to)
	}
	if _, err := put(d.path, d.was); err == nil {
		_ = os.Chmod(d.path, d.mode)
	}
}

// apply makes the chunks' changes to a text, one after the other from its beginning on.
func apply(path, text string, chunks []chunk) (string, error) {
	ends := "\n"
	if strings.Contains(text, "\r\n") {
		ends = "\r\n"
	}
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	if text == "" {
		lines = nil
	}
	var out []string
	at := 0 // lines that are done
	for i := range chunks {
		k := &chunks[i]
		from := at
		for _, context := range k.after {
			found := seek(lines, []string{context}, from, false)
			if found < 0 {
				return "", refuse("line %d of the patch: %s has no line %q after what was changed before", k.line, path, clip(context, 200))
			}
			from = found + 1
		}
		if len(k.old) == 0 && len(k.after) == 0 {
			from = len(lines) // text that only adds goes to the end
		}
		found := seek(lines, k.old, from, k.atEnd)
		if found < 0 {
			return "", refuse("line %d of the patch: %s does not have these lines%s, so nothing was changed. Read the file again:\n%s",
				k.line, path, where(k), clip(strings.Join(k.old, "\n"), 1000))
		}
		out = append(append(out, lines[at:found]...), k.new...)
		at = found + len(k.old)
	}
	out = append(out, lines[at:]...)
	if len(out) == 0 {
		return "", nil
	}
	return strings.Join(out, ends) + ends, nil
}

func where(k *chunk) string {
	if k.atEnd {
		return " at its end"
	}
	return ""
}

// seek finds lines in others from an index on: as they are, else without the space at
// their ends, else without that at their beginnings either. It returns -1 for nowhere.
func seek(lines, want []string, from int, atEnd bool) int {
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return strings.TrimRight(a, " \t") == strings.TrimRight(b, " \t") },
		func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) },
	} {
		first := from
		if atEnd {
			first = max(from, len(lines)-len(want))
		}
		for i := first; i+len(want) <= len(lines); i++ {
			if matches(lines[i:], want, same) {
				return i
			}
		}
	}
	return -1
}

func matches(lines, want []string, same func(a, b string) bool) bool {
	for i := range want {
		if !same(lines[i], want[i]) {
			return false
		}
	}
	return true
}

// clean is a path of a patch, so that the same file is known again.
func clean(path string) string { return filepath.Clean(strings.TrimSpace(path)) }
