// Package filetool defines the requests and answers of the file program in a sandbox. Package
// guest/filetool implements the program.
//
// A Call is JSON. An answer is one line of JSON numbers, an Answer, followed by plain text. The
// text stays outside the JSON because JSON escapes would hide secrets from redaction.
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

// Op selects what a Call does.
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

// Limits of an answer.
const (
	MaxText    = 64 << 10 // bytes of a file, or of matching lines
	MaxMatches = 1000     // lines, or paths
	MaxPaths   = 256 << 10

	// MaxBody limits what follows the JSON line: the paths and the text.
	MaxBody = MaxPaths + MaxText + 4<<10
	// MaxAnswer limits the whole answer.
	MaxAnswer = maxHead + 1 + MaxBody

	maxHead = 512
)

// MaxShared limits a shared file, in bytes.
const MaxShared = execution.MaxOutputBytes

// Folder is the directory, in the working directory, where Share may put a file.
const Folder = ".atoll"

// Program is the guest daemon's binary in runtime.GuestDir. Command is its first argument to run a
// Call from stdin.
const (
	Program = "atoll-guestd"
	Command = "file"
)

// Call is one use of a tool. Paths are relative to the working directory.
type Call struct {
	Op   Op     `json:"op"`
	Path string `json:"path,omitempty"` // a file; for Grep and Glob also a directory

	Content string `json:"content,omitempty"` // Write

	From int64 `json:"from,omitempty"` // Read: the first line, from 1
	To   int64 `json:"to,omitempty"`   // the last line; 0 for as many as fit

	Old string `json:"old,omitempty"` // Edit
	New string `json:"new,omitempty"`
	All bool   `json:"all,omitempty"` // replace every occurrence of Old

	Pattern string `json:"pattern,omitempty"` // Grep: a regular expression; Glob
	Include string `json:"include,omitempty"` // Grep: a glob for file names
	Fold    bool   `json:"fold,omitempty"`    // Grep: ignore case

	Patch string `json:"patch,omitempty"`

	// Beside is where Share copies the file for collection; "" leaves it in place.
	Beside string `json:"beside,omitempty"`
}

// Answer is the result of a Call. Body holds Paths lines of paths, then text.
type Answer struct {
	Failed    bool  `json:"failed,omitempty"` // Body explains why, in words for the model
	Bytes     int64 `json:"bytes,omitempty"`  // of the file: Write, Read, Edit, Share
	Created   bool  `json:"created,omitempty"`
	From      int64 `json:"from,omitempty"`  // Read: the lines in Body; 0 for none
	To        int64 `json:"to,omitempty"`    //
	Lines     int64 `json:"lines,omitempty"` // Read: of the whole file
	Count     int64 `json:"count,omitempty"` // replacements, matching lines, or paths
	Paths     int64 `json:"paths,omitempty"`
	Truncated bool  `json:"truncated,omitempty"` // there is more
	// Lacks lists extras of the default image that a failed call needs; see package requirement.
	Lacks []string `json:"lacks,omitempty"`

	Body []byte `json:"-"`
}

// WriteTo writes the answer in the format that Parse reads.
func (a *Answer) WriteTo(w io.Writer) (int64, error) {
	head, err := json.Marshal(a)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(append(head, '\n'), a.Body...))
	return int64(n), err
}

// ErrAnswer is returned for a malformed answer.
var ErrAnswer = errors.New("the sandbox sent no answer of the file tools")

// Parse parses an answer. It does not trust the writer.
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
