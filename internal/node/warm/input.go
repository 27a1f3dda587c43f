package warm

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/collect"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// files are what is put into the working folder before a program starts: its code,
// the files that it is given, and the folders that it gives back.
func files(p *execution.Program) (list []initclient.File) {
	if !p.Input.Tool && !p.Input.Helper {
		list = []initclient.File{{Path: path.Join(runtime.Home, execution.ProgramFile(p.Language)), Mode: 0o644, Data: []byte(p.Code)}}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Input.Files)) {
		list = append(list, initclient.File{Path: path.Join(runtime.Home, name), Mode: 0o644, Data: p.Input.Files[name]})
	}
	for _, f := range p.Skills {
		mode := fs.FileMode(0o444)
		if f.Exec {
			mode = 0o555
		}
		list = append(list, initclient.File{Path: f.Path, Mode: mode, Data: f.Data})
	}
	for _, name := range p.Input.Outputs {
		if strings.HasSuffix(name, "/") {
			list = append(list, initclient.File{Path: path.Join(runtime.Home, name) + "/"})
		}
	}
	return list
}

// daemon is the command that has the guest daemon's binary do something else: it is in every
// sandbox, whatever the image holds.
func (s *Sandbox) daemon(args ...string) initclient.Command {
	const name = "atoll-guestd"
	return initclient.Command{
		Path: path.Join(runtime.GuestDir, name), Argv: append([]string{name}, args...), Dir: runtime.Home,
		Limits: initclient.Limits{Processes: s.maker.cfg.Limits.Processes, OpenFiles: s.maker.cfg.Limits.OpenFiles},
	}
}

// collectTime is how long the sandbox may take to send the files of a program.
const collectTime = 30 * time.Second

// Collect passes the files at paths to put, in the order of paths, after a program
// has ended. Paths are as execution.Input.Outputs. truncated says that there were more
// or larger files than are passed on.
func (s *Sandbox) Collect(ctx context.Context, paths []string, put func(execution.OutputFile, io.Reader) error) (truncated bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// What an earlier process ran here and took no end of: its output would fill the
	// guest's spool, which this run shares.
	for _, id := range s.guest.Info().Runs {
		if err := s.guest.Discard(ctx, id); err != nil && !errors.Is(err, initclient.ErrNoRun) {
			return false, err
		}
	}
	go func() { // ends with ctx
		select {
		case <-s.instance.Done():
			cancel(errLost)
		case <-time.After(collectTime + stallTime):
			cancel(errStalled)
		case <-ctx.Done():
		}
	}()
	spec := initclient.RunSpec{
		ID:          initclient.RunID(rand.Uint64() | 1),
		Command:     s.daemon(append([]string{collect.Command}, paths...)...),
		Timeout:     collectTime,
		OutputLimit: execution.MaxOutputBytes + collect.Overhead,
	}
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := s.guest.Run(ctx, spec, func(stream initclient.Stream, p []byte) {
			if stream == initclient.Stdout {
				_, _ = w.Write(p) // after an error of Read nothing is taken any more
			}
		})
		w.CloseWithError(err)
	}()
	truncated, err = collect.Read(r, paths, put)
	r.CloseWithError(err)
	if err != nil {
		cancel(err)
	}
	<-ended
	return truncated, err
}
