package executor

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// streams are the names of a program's outputs by number.
var streams = [2]execution.Stream{execution.Stdout, execution.Stderr}

func number(s execution.Stream) int {
	if s == execution.Stderr {
		return 1
	}
	return 0
}

// answer collects both streams whole: in memory while they are short, else in
// files.
type answer struct {
	path  string          // of both files, without their endings
	count func(bytes int) // told of bytes that go to files

	written [2]int64
	short   [2][]byte // all of it without files; its beginning with them
	files   *[2]spool
	err     error // why the files are not whole
}

type spool struct {
	file *os.File
	buf  *bufio.Writer
}

func (a *answer) write(n int, p []byte) {
	a.written[n] += int64(len(p))
	if a.err != nil {
		return
	}
	if a.files == nil {
		if len(a.short[0])+len(a.short[1])+len(p) <= execution.InlineOutput {
			a.short[n] = append(a.short[n], p...)
			return
		}
		if a.err = a.spill(); a.err != nil {
			return
		}
	}
	a.count(len(p))
	_, a.err = a.files[n].buf.Write(p)
}

// spill goes on in files.
func (a *answer) spill() error {
	if err := a.open(os.O_TRUNC); err != nil {
		return err
	}
	for n := range a.files {
		if _, err := a.files[n].buf.Write(a.short[n]); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) open(flag int) error {
	a.files = new([2]spool)
	for n, s := range streams {
		f, err := os.OpenFile(a.path+"."+string(s), os.O_CREATE|os.O_RDWR|flag, 0o600)
		if err != nil {
			return err
		}
		a.files[n] = spool{f, bufio.NewWriterSize(f, execution.MaxChunk)}
	}
	return nil
}

// sync hands everything to the kernel, where the end of this process does not
// touch it.
func (a *answer) sync() {
	if a.files == nil || a.err != nil {
		return
	}
	for n := range a.files {
		a.err = errors.Join(a.err, a.files[n].buf.Flush())
	}
}

// resume makes the answer what another one was at a sync, whose files may have
// more by now.
func (a *answer) resume(s savedAnswer) error {
	a.written, a.short = s.Written, s.Short
	if s.Broken {
		a.err = errBroken
		return nil
	}
	if !s.Files {
		return nil
	}
	if err := a.open(0); err != nil {
		return err
	}
	for n := range a.files {
		f := a.files[n].file
		if err := f.Truncate(a.written[n]); err != nil {
			return err
		}
		if _, err := f.Seek(a.written[n], io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

var errBroken = errors.New("the whole output could not be kept")

// savedAnswer is an answer in a journal.
type savedAnswer struct {
	Written [2]int64
	Short   [2][]byte
	Files   bool
	Broken  bool
}

func (a *answer) save() savedAnswer {
	a.sync()
	return savedAnswer{a.written, a.short, a.files != nil, a.err != nil}
}

// uploadTries is how often an upload is begun before its output is cut instead.
const uploadTries = 4

// upload puts files into the blob store, if there are any, and reports whether
// it did.
func (a *answer) upload(ctx context.Context, blobs Blobs, job *execution.Job) (stored bool, err error) {
	a.sync()
	if a.files == nil && a.err == nil {
		return false, nil
	}
	if a.err != nil {
		return false, a.err
	}
	for n, s := range streams {
		name := execution.OutputName(job.Tenant, job.TraceID, s)
		for try := 1; ; try++ {
			if _, err = a.files[n].file.Seek(0, io.SeekStart); err == nil {
				err = blobs.Put(ctx, name, a.files[n].file)
			}
			if err == nil {
				break
			}
			if try == uploadTries || !pause(ctx, time.Duration(try*try)*100*time.Millisecond) {
				return false, fmt.Errorf("store %s: %w", name, err)
			}
		}
	}
	return true, nil
}

// pause waits, and reports whether ctx did not end meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *answer) close() {
	if a.files == nil {
		return
	}
	for n := range a.files {
		if f := a.files[n].file; f != nil {
			f.Close()
		}
	}
}

// remove removes the files of an answer that is not needed any more.
func (a *answer) remove() error {
	if a.files == nil {
		return nil
	}
	return removeOutputs(a.path)
}

// filesSuffix ends the name of the file that a program's output files are gathered in.
const filesSuffix = ".files"

// removeOutputs removes all that a run can have at an answer's path.
func removeOutputs(path string) error {
	errs := []error{removeFile(path + filesSuffix)}
	for _, s := range streams {
		errs = append(errs, removeFile(path+"."+string(s)))
	}
	return errors.Join(errs...)
}

// removeFile removes a file that need not be there.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// outputPath returns where the answer of a sandbox has its files, without their
// endings.
func (x *Executor) outputPath(folder string) string {
	return filepath.Join(cmp.Or(x.cfg.Outputs, folder), filepath.Base(folder))
}

// sweepOutputs removes the files of answers whose sandboxes are not among those
// that were left.
func (x *Executor) sweepOutputs(ctx context.Context, left []string) error {
	if x.cfg.Outputs == "" {
		return nil // they went with their sandboxes
	}
	if err := os.MkdirAll(x.cfg.Outputs, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(x.cfg.Outputs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))
		if slices.ContainsFunc(left, func(folder string) bool { return filepath.Base(folder) == id }) {
			continue
		}
		x.retries.Try(ctx, cleanup.Output, e.Name(), func(context.Context) error {
			return os.RemoveAll(filepath.Join(x.cfg.Outputs, e.Name()))
		})
	}
	return nil
}
