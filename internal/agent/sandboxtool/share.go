package sandboxtool

import (
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// A file that is shared is one that its execution gives back, so it is bound, redacted and
// counted as those are. One that is not below the working folder, or has a name that such
// files cannot have, is put where it can be collected first.

func shareCall(in *shareInput) filetool.Call {
	c := filetool.Call{Op: filetool.Share, Path: *in.Path}
	if below(c.Path) == "" {
		c.Beside = filetool.Folder + "/shared"
	}
	return c
}

// stored is the name of a shared file among those of its execution.
func stored(c *filetool.Call) string {
	if c.Beside != "" {
		return c.Beside
	}
	return below(c.Path)
}

// below is a path relative to the working folder, if an execution can give it back; else "".
func below(p string) string {
	p = path.Clean(p)
	if path.IsAbs(p) {
		rel, ok := strings.CutPrefix(p, runtime.Home+"/")
		if !ok {
			return ""
		}
		p = rel
	}
	if execution.CheckFileName("file_path", p) != nil {
		return ""
	}
	return p
}

// shared fills in what is known of a file that was shared, and returns why it was not.
func shared(c *loop.Call, call *filetool.Call, e *execution.Execution, u *FileUse) (why string) {
	u.Execution = e.TraceID
	name := stored(call)
	if len(e.Files.Files) != 1 || e.Files.Files[0].Name != name {
		return "the file could not be kept; it may have changed meanwhile"
	}
	u.FileID, u.Name, u.Stored = fileID(c.Run.ID, c.Number), path.Base(call.Path), name
	u.Size, u.CreatedAt = &e.Files.Files[0].Bytes, e.CompletedAt.Unix()
	return ""
}

// fileID names the file of a call for good.
func fileID(id run.ID, number int) string {
	return fmt.Sprintf("file_%s%04x", strings.TrimPrefix(string(id), "run_"), number)
}

// RunOf is the run that has shared the file of an id, if it is one; else "".
func RunOf(fileID string) run.ID {
	digits, ok := strings.CutPrefix(fileID, "file_")
	if !ok || len(digits) < 4 {
		return ""
	}
	return run.ID("run_" + digits[:len(digits)-4])
}

func showShare(_ *filetool.Call, _ *filetool.Answer, u *FileUse) string {
	return fmt.Sprintf("Shared as %q with %d bytes. The user can download it.", u.Name, *u.Size)
}

// Shared returns the files that a run has shared, in the order of the calls.
func Shared(s *run.State) (files []FileUse, err error) {
	for i := range s.Output {
		use := s.Output[i].Use
		if use == nil || use.Tool != ShareFile || s.Output[i].Status != run.ItemCompleted {
			continue
		}
		u, err := ReadUse(use.Output)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", s.Output[i].ID, err)
		}
		files = append(files, u)
	}
	return files, nil
}
