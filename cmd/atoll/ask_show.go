package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/app/tty"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// Bounds of what is shown of a call.
const (
	maxShownLines = 20
	maxShownWidth = 200 // characters of a line
)

// shown shows a response while it comes: text on stdout, the rest on stderr.
type shown struct {
	out, err io.Writer
	json     bool
	raw      bool // out is no terminal: text goes there as it is
	midLine  bool // out is within a line
	begun    map[int64]bool
	writes   map[int64]*item // calls whose arguments the model writes, by their place in the output
	shared   []sharedItem
}

func newShown(a *cli, asJSON bool) *shown {
	f, isFile := a.std.out.(*os.File)
	return &shown{out: a.std.out, err: a.std.err, json: asJSON, raw: !isFile || !term.IsTerminal(int(f.Fd())), begun: map[int64]bool{}, writes: map[int64]*item{}}
}

// item is what is shown of the items of a response.
type item struct {
	Type     string
	Status   string
	Language string
	Code     string
	Results  []codeResult                 // of sandbox_results; those of other types have other fields
	Outputs  []struct{ Logs, URL string } // of code_interpreter_call
	Summary  []struct{ Text string }

	Name      string
	Arguments string
	Path      string `json:"file_path"`
	FileID    string `json:"file_id"`
	FileName  string `json:"filename"`
	Error     json.RawMessage
	Message   string
	Files     []string
	Queries   []string
}

// codeResult is the outcome of one execution.
type codeResult struct {
	Stdout, Stderr string
	ExitCode       int   `json:"exit_code"`
	DurationMS     int64 `json:"duration_ms"`
	Status         string
	Title, URL     string // of a page that was found
}

// sharedItem is a file that the model shared.
type sharedItem struct{ id, name string }

// event shows an event.
func (s *shown) event(ev *sdk.ResponseEvent, raw json.RawMessage) error {
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		if s.json || ev.Delta == nil || *ev.Delta == "" {
			return nil
		}
		text := *ev.Delta
		if !s.raw {
			text = tty.Printable(text)
		}
		s.midLine = !strings.HasSuffix(text, "\n")
		_, err := io.WriteString(s.out, text)
		return err
	case "response.code_interpreter_call_code.done":
		if ev.Code != nil && ev.OutputIndex != nil {
			s.item(&item{Type: "sandbox_results", Language: "python", Code: *ev.Code}, *ev.OutputIndex, false)
		}
	case "response.mcp_call_arguments.done":
		if ev.OutputIndex == nil || ev.Arguments == nil {
			return nil
		}
		if it := s.writes[*ev.OutputIndex]; it != nil {
			it.Arguments = *ev.Arguments
			s.item(it, *ev.OutputIndex, false)
		}
	case "response.output_item.added", "response.output_item.done":
		var whole struct{ Item item }
		if err := json.Unmarshal(raw, &whole); err != nil {
			return nil //nolint:nilerr // an item of a kind that is not known here has no form here
		}
		var at int64
		if ev.OutputIndex != nil {
			at = *ev.OutputIndex
		}
		s.item(&whole.Item, at, ev.Type == "response.output_item.done")
	}
	return nil
}

// newline ends a line of text, so that what follows on a terminal begins one.
func (s *shown) newline() {
	if s.midLine && !s.json {
		fmt.Fprintln(s.out)
		s.midLine = false
	}
}

// item shows an item: what is done when it begins, and what came of it.
func (s *shown) item(it *item, at int64, done bool) {
	switch it.Type {
	case "message":
		if done {
			s.newline()
		}
		return
	case "reasoning":
		if done {
			for _, part := range it.Summary {
				s.say("thought", part.Text)
			}
		}
		return
	case interpreter + "_call", "share_file":
		if !done {
			return // the code comes in an event of its own, the file's name at the end
		}
	case "mcp_call":
		if !done && it.Arguments == "" {
			s.writes[at] = it // until the model has written its arguments
			return
		}
	}
	if !s.begun[at] {
		s.begun[at] = true
		s.newline()
		s.begins(it)
	}
	if done {
		s.ends(it)
	}
}

// kinds are what items of some types are shown as.
var kinds = map[string]string{
	"sandbox_write_file": "write", "sandbox_read_file": "read", "sandbox_edit_file": "edit", "sandbox_grep": "grep", "sandbox_glob": "glob",
	"sandbox_apply_patch": "patch", "share_file": "share", "search_results": "search", "fetch_url_results": "fetch", "function_call": "function",
}

func (s *shown) begins(it *item) {
	kind := it.Type
	if short, ok := kinds[kind]; ok {
		kind = short
	}
	switch {
	case it.Code != "":
		if it.Language != "" {
			kind = it.Language
		}
		s.say(kind, it.Code)
	case it.Path != "":
		s.say(kind, it.Path)
	case len(it.Queries) > 0:
		s.say(kind, strings.Join(it.Queries, "; "))
	case it.Name != "":
		s.say(kind, it.Name+" "+it.Arguments)
	default:
		s.say(kind, it.FileName)
	}
}

func (s *shown) ends(it *item) {
	for _, r := range it.Results {
		if it.Type != "sandbox_results" {
			s.body("  ", strings.TrimSpace(r.Title+" "+r.URL))
			continue
		}
		s.body("  ", r.Stdout)
		s.body("  ", r.Stderr)
		end := fmt.Sprintf("exit code %d", r.ExitCode)
		if r.Status != "completed" {
			end = strings.ReplaceAll(r.Status, "_", " ")
		}
		fmt.Fprintf(s.err, "  [%s, %s]\n", end, time.Duration(r.DurationMS)*time.Millisecond)
	}
	for _, out := range it.Outputs {
		s.body("  ", out.Logs)
		if out.URL != "" {
			s.body("  ", "[a figure]")
		}
	}
	var reason string
	switch {
	case len(it.Error) > 0 && string(it.Error) != "null":
		if json.Unmarshal(it.Error, &reason) != nil {
			reason = string(it.Error)
		}
		s.body("  ", "failed: "+reason)
	case it.FileID != "":
		s.shared = append(s.shared, sharedItem{it.FileID, it.FileName})
	case len(it.Files) > 0:
		s.body("  ", strings.Join(it.Files, "\n"))
	case it.Message != "":
		s.body("  ", it.Message)
	}
}

// say shows what is done.
func (s *shown) say(kind, text string) {
	first, rest, more := strings.Cut(strings.TrimRight(text, "\n"), "\n")
	if !more {
		fmt.Fprintf(s.err, "- %s: %s\n", kind, cutLine(first))
		return
	}
	fmt.Fprintf(s.err, "- %s:\n", kind)
	s.body("    ", first+"\n"+rest)
}

// body shows a text by its first and last lines.
func (s *shown) body(indent, text string) {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	left := len(lines) - maxShownLines
	for i, line := range lines {
		if left > 1 && i >= maxShownLines/2 && i < maxShownLines/2+left {
			if i == maxShownLines/2 {
				fmt.Fprintf(s.err, "%s… %d lines …\n", indent, left)
			}
			continue
		}
		fmt.Fprintf(s.err, "%s%s\n", indent, cutLine(line))
	}
}

// cutLine is a line that a terminal can show: what a program writes must not move its
// cursor.
func cutLine(line string) string {
	line = tty.Printable(strings.TrimRight(line, "\r"))
	if runes := []rune(line); len(runes) > maxShownWidth {
		return string(runes[:maxShownWidth]) + "…"
	}
	return line
}

// end shows how a response ended, and returns why it is no answer.
func (s *shown) end(r *sdk.Response, raw json.RawMessage) error {
	s.newline()
	if s.json {
		var last struct{ Response json.RawMessage }
		if err := json.Unmarshal(raw, &last); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(s.out, "%s\n", last.Response); err != nil {
			return err
		}
	} else if r.Usage != nil {
		fmt.Fprintf(s.err, "[%s: %d tokens in, %d out, $%g]\n", r.ID, r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.Cost.TotalCost)
	}
	switch {
	case r.Status == "completed" || r.Status == "requires_action":
		return nil
	case r.Error != nil:
		return fmt.Errorf("the response failed: %s", r.Error.Message)
	case r.IncompleteDetails != nil:
		return fmt.Errorf("the response is incomplete (%s): %s", r.IncompleteDetails.Reason, r.IncompleteDetails.Message)
	}
	return fmt.Errorf("the response is %s", r.Status)
}
