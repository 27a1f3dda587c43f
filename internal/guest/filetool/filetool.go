// Package filetool is the program by which models work on the files of a sandbox. It runs
// in the sandbox, as the sandbox's user, and may do what that user may.
package filetool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

// maxCall bounds a Call as JSON.
const maxCall = 8 << 20

// refusal is for the model to read.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

var ops = map[filetool.Op]func(*filetool.Call) (*filetool.Answer, error){
	filetool.Write: write, filetool.Read: read, filetool.Edit: edit, filetool.Grep: grep,
	filetool.Glob: glob, filetool.Patch: patch, filetool.Share: share,
}

// Run does the Call that in has and writes the Answer. ok is whether it did what was asked
// for.
func Run(in io.Reader, out io.Writer) (ok bool, err error) {
	var c filetool.Call
	if err := json.NewDecoder(io.LimitReader(in, maxCall)).Decode(&c); err != nil {
		return false, fmt.Errorf("read the call: %w", err)
	}
	op := ops[c.Op]
	if op == nil {
		return false, fmt.Errorf("there is no operation %q", c.Op)
	}
	a, err := op(&c)
	if err != nil {
		a = &filetool.Answer{Failed: true, Body: []byte(clip(why(err), 4<<10))}
	}
	_, werr := a.WriteTo(out)
	return err == nil, werr
}

// why is an error in words for the model.
func why(err error) string {
	if r, ok := errors.AsType[refusal](err); ok {
		return string(r)
	}
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err.Error()
	}
	reason := p.Err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		reason = "the sandbox's user may not do that"
	case errors.Is(err, syscall.ENOSPC):
		reason = "the sandbox's disk is full"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		reason = "too many open files: the sandbox has no free file descriptor. End programs that hold files open, then retry"
	case errors.Is(err, syscall.ENOTDIR):
		reason = "a part of the path is no folder"
	}
	return p.Path + ": " + reason
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
