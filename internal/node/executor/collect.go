package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// Collector is a Claimed whose files can be had after a program.
type Collector interface {
	// Collect passes the files at paths to put, one after the other. truncated says
	// that there are more, or larger ones, than are passed on.
	Collect(ctx context.Context, paths []string, put func(execution.OutputFile, io.Reader) error) (truncated bool, err error)
}

// collect stores the files that a program gives back. If they cannot be stored the
// run has failed, whatever the program made of it. The journal says first how the
// program ended, because the guest forgets the program with the first call after it:
// a process that takes over could otherwise not tell that it ran.
func (t *task) collect(out *output, e *endRecord, lost bool) {
	c, ok := t.sandbox.(Collector)
	if !ok || lost || len(t.job.Input.Outputs) == 0 || e.Status == execution.Cancelled || t.job.Input.Tool && e.Status != execution.Success {
		return
	}
	e.Collects = true
	t.note(out, *e)
	err := t.storeFiles(c, e, out.answer.path+filesSuffix)
	e.Collects = false
	if err != nil {
		t.x.cfg.Log.Error("cannot store the files of a program", "trace_id", t.job.TraceID, "error", err)
		e.filesLost()
	}
}

// collectAgain is collect for a process that takes over a run whose files another one
// was storing. opened says why the sandbox cannot be asked for them, nil if it can.
func (t *task) collectAgain(out *output, e *endRecord, opened error) {
	e.Collects = false
	if opened == nil {
		t.collect(out, e, false)
	} else {
		t.x.cfg.Log.Error("cannot store the files of a program", "trace_id", t.job.TraceID, "error", opened)
		e.filesLost()
		if err := removeFile(out.answer.path + filesSuffix); err != nil {
			t.x.cfg.Log.Warn("cannot remove an output", "trace_id", t.job.TraceID, "error", err)
		}
	}
	e.CompletedAt = time.Now()
}

// storeFiles puts the contents of all files into one blob, without registered secrets.
// The rules that look for tokens and keys are for text: they do not change files. path
// is of the file that the contents are gathered in.
func (t *task) storeFiles(c Collector, e *endRecord, path string) (err error) {
	e.Files = execution.OutputFiles{}
	set, err := t.x.sets.Get(t.job.Secrets, nil)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, removeFile(path))
		file.Close()
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.x.cfg.FlushTime)
	defer cancel()
	e.Files.Truncated, err = c.Collect(ctx, t.job.Input.Outputs, func(f execution.OutputFile, r io.Reader) error {
		f.Bytes, err = redact.Copy(set, file, r)
		e.Files.Files = append(e.Files.Files, f)
		return err
	})
	if err != nil || len(e.Files.Files) == 0 {
		return err
	}
	name := execution.FilesName(t.job.Tenant, t.job.TraceID)
	for try := 1; ; try++ {
		if _, err = file.Seek(0, io.SeekStart); err == nil {
			err = t.x.cfg.Blobs.Put(ctx, name, file)
		}
		if err == nil {
			return nil
		}
		if try == uploadTries || !pause(ctx, time.Duration(try*try)*100*time.Millisecond) {
			return fmt.Errorf("store %s: %w", name, err)
		}
	}
}
