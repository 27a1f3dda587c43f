package sandboxtool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// fileTime is how long a file tool may take.
const fileTime = 30 * time.Second

func (t *fileTool) model() model.Tool {
	return model.Tool{Name: t.name, Description: t.description, Parameters: t.schema}
}

func (t *fileTool) show(c *loop.Call) (*run.Item, error) {
	call, err := t.parse(c.Call.Arguments)
	if err != nil {
		return nil, err
	}
	if _, err := encode(call); err != nil {
		return nil, err
	}
	return &run.Item{Status: run.ItemInProgress, Use: &run.ToolUse{CallID: c.Call.ID, Tool: t.use, Input: json.RawMessage(c.Call.Arguments)}}, nil
}

// encode is a call as the program in the sandbox reads it.
func encode(call *filetool.Call) (string, error) {
	b, err := json.Marshal(call)
	if err == nil && len(b) > execution.MaxCode {
		err = fault.New(fault.Invalid, "the input is longer than 1 MB; write large files in parts, or with %s", RunCode)
	}
	return string(b), err
}

func (t *fileTool) request(c *loop.Call, p execution.Policy) (execution.Request, error) {
	call, err := t.parse(c.Call.Arguments)
	if err != nil {
		return execution.Request{}, err
	}
	return t.requestOf(call, p)
}

func (t *fileTool) requestOf(call *filetool.Call, p execution.Policy) (execution.Request, error) {
	code, err := encode(call)
	req := execution.Request{
		Code: code, Language: execution.Languages[0], Timeout: min(fileTime, p.DefaultTimeout()), Metadata: map[string]string{"tool": t.use},
		Input: execution.Input{Tool: true},
	}
	if call.Op == filetool.Share {
		req.Outputs = []string{stored(call)}
	}
	return req, err
}

func (t *fileTool) refused(c *loop.Call, why string) *loop.Outcome {
	return t.ended(c, run.ItemFailed, &FileUse{}, why, "It was not done: "+why)
}

// ended is the outcome of a call. why is "" for one that did what was asked for.
func (t *fileTool) ended(c *loop.Call, status run.ItemStatus, u *FileUse, why, told string) *loop.Outcome {
	use := *c.Item.Use
	use.Output, _ = json.Marshal(u) // of plain values: never fails
	use.Error = why
	return &loop.Outcome{Result: sandboxcall.Result(told, why != ""), Item: &run.Item{Status: status, Use: &use}}
}

func (t *fileTool) outcome(ctx context.Context, s *Sandbox, c *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	call, err := t.parse(c.Call.Arguments)
	if err != nil {
		return nil, err
	}
	u := &FileUse{Execution: e.TraceID}
	if e.Status == execution.Timeout {
		why := fmt.Sprintf("it took longer than %s", e.Timeout)
		return t.ended(c, run.ItemTimedOut, u, why, "It was ended: "+why), nil
	}
	a, err := s.answer(ctx, e)
	if err != nil {
		return nil, err
	}
	switch {
	case a != nil && a.Failed:
		_, why := a.Split()
		return t.ended(c, run.ItemFailed, u, why, why), nil
	case a == nil || e.Status != execution.Success:
		why := e.Error
		if why == "" {
			why = "the sandbox could not complete the call"
		}
		return t.ended(c, run.ItemFailed, u, why, "It failed: "+why), nil
	}
	if call.Op == filetool.Share {
		if why := shared(c, call, e, u); why != "" {
			return t.ended(c, run.ItemFailed, &FileUse{Execution: e.TraceID}, why, "It failed: "+why), nil
		}
	}
	told := t.show1(call, a, u)
	out := t.ended(c, run.ItemCompleted, u, "", told)
	if call.Op == filetool.Share {
		out.Notes = map[run.EventKind]run.Note{run.EventFile: {Data: out.Item.Use.Output}}
	}
	return out, nil
}

// answer reads what the program in the sandbox said; nil if that is no answer.
func (s *Sandbox) answer(ctx context.Context, e *execution.Execution) (*filetool.Answer, error) {
	in, err := s.Runner.Whole(ctx, e, execution.Stdout)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound { // its time has passed
			return nil, nil
		}
		return nil, err
	}
	said, _, err := text(in, filetool.MaxAnswer)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", e.TraceID, err)
	}
	a, err := filetool.Parse([]byte(said))
	if err != nil {
		return nil, nil //nolint:nilerr // the sandbox is not trusted to answer
	}
	return a, nil
}

func showWrite(c *filetool.Call, a *filetool.Answer, u *FileUse) string {
	u.Size = new(int64(len(c.Content)))
	if a.Created {
		return fmt.Sprintf("Created %s with %d bytes.", c.Path, *u.Size)
	}
	return fmt.Sprintf("Wrote %d bytes to %s.", *u.Size, c.Path)
}

func showRead(c *filetool.Call, a *filetool.Answer, u *FileUse) string {
	_, text := a.Split()
	u.Content, u.From, u.Lines = &text, max(a.From, 1), &a.Lines
	if a.Lines == 0 {
		return c.Path + " is empty."
	}
	told := fmt.Sprintf("%s, lines %d to %d of %d:\n%s", c.Path, a.From, a.To, a.Lines, text)
	if a.Truncated {
		told += fmt.Sprintf("\n[cut; the next lines begin at start_line %d]", a.To+1)
	}
	return told
}

func showEdit(c *filetool.Call, a *filetool.Answer, u *FileUse) string {
	u.Message = fmt.Sprintf("Replaced the text in %s in one place.", c.Path)
	if a.Count != 1 {
		u.Message = fmt.Sprintf("Replaced the text in %s in %d places.", c.Path, a.Count)
	}
	return u.Message
}

func showGrep(_ *filetool.Call, a *filetool.Answer, u *FileUse) string {
	files, text := a.Split()
	u.Files, u.Count, u.Truncated = files, &a.Count, a.Truncated
	switch {
	case a.Count == 0 && !a.Truncated:
		return "No line matches."
	case a.Truncated:
		text += "[there are more; narrow the search]\n"
	}
	return text
}

func showGlob(_ *filetool.Call, a *filetool.Answer, u *FileUse) string {
	files, _ := a.Split()
	u.Files, u.Count, u.Truncated = files, &a.Count, a.Truncated
	if len(files) == 0 {
		return "Nothing matches."
	}
	told := strings.Join(files, "\n")
	if a.Truncated {
		told += "\n[there are more; narrow the pattern]"
	}
	return told
}

func showPatch(_ *filetool.Call, a *filetool.Answer, u *FileUse) string {
	lines, _ := a.Split()
	for _, line := range lines {
		verb, path, _ := strings.Cut(line, " ")
		switch verb {
		case "A":
			u.Added = append(u.Added, path)
		case "M":
			u.Modified = append(u.Modified, path)
		case "D":
			u.Deleted = append(u.Deleted, path)
		}
	}
	return "Done. Added (A), modified (M) and deleted (D):\n" + strings.Join(lines, "\n")
}
