// Package filetool is what the program for files in a sandbox is asked, and how its answer
// is read: the program is in package guest/filetool.
//
// A Call is JSON. An answer is a line of JSON with numbers, an Answer, and after it text as
// it is: so what covers secrets in a program's output finds them, which JSON would have
// written otherwise.
package filetool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Op is what a Call does.
type Op string

// Operations.
const (
	Write Op = "write"
	Read  Op = "read"
	Edit  Op = "edit"
	Grep  Op = "grep"
	Glob  Op = "glob"
	Patch Op = "patch"
	Share Op = "share"
)

// Bounds of an answer.
const (
	MaxText    = 64 << 10 // bytes of a file, or of lines that match
	MaxMatches = 1000     // lines, or paths
	MaxPaths   = 256 << 10

	// MaxBody bounds what follows the line of an Answer: the paths, and the text.
	MaxBody = MaxPaths + MaxText + 4<<10
	// MaxAnswer bounds the whole.
	MaxAnswer = maxHead + 1 + MaxBody

	maxHead = 512
)

// MaxShared bounds a file that is shared, in bytes.
const MaxShared = execution.MaxOutputBytes

// Folder is where Share may put a file, in the working folder.
const Folder = ".atoll"

// Program is the guest daemon's binary in runtime.GuestDir, and Command the first argument that
// has it do a Call, which it reads from its stdin.
const (
	Program = "atoll-guestd"
	Command = "file"
)

// Call is one use of a tool. Paths are relative to the working folder.
type Call struct {
	Op   Op     `json:"op"`
	Path string `json:"path,omitempty"` // of a file; for Grep and Glob of a folder, too

	Content string `json:"content,omitempty"` // Write

	From int64 `json:"from,omitempty"` // Read: the first line, from 1
	To   int64 `json:"to,omitempty"`   // the last one; 0 for as many as fit

	Old string `json:"old,omitempty"` // Edit
	New string `json:"new,omitempty"`
	All bool   `json:"all,omitempty"` // every place where Old is

	Pattern string `json:"pattern,omitempty"` // Grep: a regular expression; Glob
	Include string `json:"include,omitempty"` // Grep: a glob that names of files match
	Fold    bool   `json:"fold,omitempty"`    // Grep: upper and lower case are the same

	Patch string `json:"patch,omitempty"`

	// Beside is where Share puts the file for whom collects it; "" leaves it where it is.
	Beside string `json:"beside,omitempty"`
}

// Answer is what came of a Call. Body is in the order of the fields here: Paths lines of
// paths, then text.
type Answer struct {
	Failed    bool  `json:"failed,omitempty"` // Body says why, in words for the model
	Bytes     int64 `json:"bytes,omitempty"`  // of the file: Write, Read, Edit, Share
	Created   bool  `json:"created,omitempty"`
	From      int64 `json:"from,omitempty"`  // Read: the lines that Body has; 0 for none
	To        int64 `json:"to,omitempty"`    //
	Lines     int64 `json:"lines,omitempty"` // Read: of the whole file
	Count     int64 `json:"count,omitempty"` // replacements, lines that match, or paths
	Paths     int64 `json:"paths,omitempty"`
	Truncated bool  `json:"truncated,omitempty"` // there is more
	// Lacks are extras of the default image that a failed call needs: see package requirement.
	Lacks []string `json:"lacks,omitempty"`

	Body []byte `json:"-"`
}

// WriteTo writes an answer, as Parse reads it.
func (a *Answer) WriteTo(w io.Writer) (int64, error) {
	head, err := json.Marshal(a)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(append(head, '\n'), a.Body...))
	return int64(n), err
}

// ErrAnswer says that something is no answer.
var ErrAnswer = errors.New("the sandbox sent no answer of the file tools")

// Parse reads an answer, whose writer is not trusted.
func Parse(b []byte) (*Answer, error) {
	head, body, ok := bytes.Cut(b, []byte("\n"))
	if !ok || len(head) > maxHead || len(body) > MaxBody {
		return nil, ErrAnswer
	}
	dec := json.NewDecoder(bytes.NewReader(head))
	dec.DisallowUnknownFields()
	a := &Answer{}
	if err := dec.Decode(a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	const most = 1 << 50
	for _, n := range []int64{a.Bytes, a.From, a.To, a.Lines, a.Count, a.Paths} {
		if n < 0 || n > most {
			return nil, fmt.Errorf("%w: the number %d", ErrAnswer, n)
		}
	}
	if a.Paths > MaxMatches || a.Paths > int64(bytes.Count(body, []byte("\n"))) {
		return nil, fmt.Errorf("%w: %d paths", ErrAnswer, a.Paths)
	}
	a.Body = body
	return a, nil
}

// Split returns the paths of an answer and the text after them.
func (a *Answer) Split() (paths []string, text string) {
	rest := strings.ToValidUTF8(string(a.Body), "\uFFFD")
	for range a.Paths {
		var path string
		path, rest, _ = strings.Cut(rest, "\n")
		paths = append(paths, path)
	}
	return paths, rest
}
