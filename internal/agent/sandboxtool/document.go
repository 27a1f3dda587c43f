package sandboxtool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// documents is the program that does what models ask for of documents. It needs Python's
// own library alone, and for PDF files pypdf or pdftotext.
//
//go:embed files/documents.py
var documents string

// Bounds of the tools for documents.
const (
	documentTime = 2 * time.Minute
	maxDocument  = 64 << 10 // characters that a model is given at once
	maxMoves     = 500
)

type (
	readDocumentInput struct {
		Path  *string     `json:"file_path" required:"true" empty:"false" doc:"Relative to the working folder, or absolute."`
		First *wire.Whole `json:"first,omitzero" doc:"The first page, slide, sheet or paragraph, from 1."`
		Last  *wire.Whole `json:"last,omitzero" doc:"The last one; as many as fit if left out."`
	}
	convertInput struct {
		Path      *string     `json:"file_path" required:"true" empty:"false" doc:"Relative to the working folder, or absolute."`
		To        *string     `json:"to_path" required:"true" empty:"false" doc:"The new file, whose ending says what it is to be."`
		Sheet     *wire.Whole `json:"sheet,omitzero" doc:"Which sheet of an XLSX file becomes the CSV file, from 1."`
		Overwrite *bool       `json:"overwrite,omitzero" doc:"Replace a file that is there."`
	}
	moveInput struct {
		From *string `json:"from_path" required:"true" empty:"false"`
		To   *string `json:"to_path" required:"true" empty:"false" doc:"The new path, the name included. Folders are made as needed."`
	}
	organizeInput struct {
		Moves  *[]moveInput `json:"moves" required:"true" doc:"1 to 500."`
		DryRun *bool        `json:"dry_run,omitzero" doc:"Say whether it can be done, and do nothing."`
	}
)

// documentTool is a tool of the skill for files.
type documentTool struct {
	name, description string
	schema            []byte
	parse             func(arguments string) (map[string]any, error)
}

func newDocumentTool[T any](name, do, description string, check func(*T) error) *documentTool {
	return &documentTool{name: name, description: description, schema: wire.ForModel(reflect.TypeFor[T](), wire.Models), parse: func(arguments string) (map[string]any, error) {
		in := new(T)
		err := wire.Arguments.Decode([]byte(arguments), in)
		if err == nil {
			err = check(in)
		}
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		call := map[string]any{}
		err = json.Unmarshal(text, &call)
		call["do"] = do
		return call, err
	}}
}

var documentTools = []*documentTool{
	newDocumentTool(skill.ReadDocumentTool, "read", "Reads the text of a PDF, DOCX, XLSX or PPTX file of the sandbox: headings, paragraphs and tables as Markdown. At most 64 KiB are returned at once.",
		func(in *readDocumentInput) error {
			return errors.Join(checkPath("file_path", in.Path), atLeastOne("first", in.First), atLeastOne("last", in.Last))
		}),
	newDocumentTool(skill.ConvertDocumentTool, "convert", "Converts a document of the sandbox to another file: PDF, DOCX, XLSX and PPTX to md or txt, XLSX to csv, md and txt to docx, csv to xlsx.",
		func(in *convertInput) error {
			return errors.Join(checkPath("file_path", in.Path), checkPath("to_path", in.To), atLeastOne("sheet", in.Sheet))
		}),
	newDocumentTool(skill.OrganizeTool, "organize", "Moves and renames files and folders of the sandbox, all or none. Nothing is overwritten.",
		func(in *organizeInput) error {
			if n := len(*in.Moves); n < 1 || n > maxMoves {
				return fault.New(fault.Invalid, "moves must be 1 to %d", maxMoves)
			}
			for i := range *in.Moves {
				m := &(*in.Moves)[i]
				if err := errors.Join(checkPath(fmt.Sprintf("moves[%d].from_path", i), m.From), checkPath(fmt.Sprintf("moves[%d].to_path", i), m.To)); err != nil {
					return err
				}
			}
			return nil
		}),
}

func checkPath(field string, path *string) error {
	if path == nil || *path == "" || len(*path) > maxPath {
		return fault.New(fault.Invalid, "%s must be a path of 1 to %d bytes", field, maxPath)
	}
	return nil
}

func atLeastOne(field string, n *wire.Whole) error {
	if n != nil && (*n < 1 || *n > 1e6 || *n != wire.Whole(int64(*n))) {
		return fault.New(fault.Invalid, "%s must be a whole number, at least 1", field)
	}
	return nil
}

// DocumentTools are the tools of the skill for files, as a model is given them.
func DocumentTools() []run.Tool {
	all := make([]run.Tool, len(documentTools))
	for i, t := range documentTools {
		all[i] = run.Tool{Tool: t.model(), Handler: Handler, Serial: true, Uncounted: true, Window: true}
	}
	return all
}

func (t *documentTool) model() model.Tool {
	return model.Tool{Name: t.name, Description: t.description, Parameters: t.schema}
}

// show implements tool. Readers see the call itself.
func (t *documentTool) show(c *loop.Call) (*run.Item, error) {
	_, err := t.parse(c.Call.Arguments)
	return nil, err
}

func (t *documentTool) request(c *loop.Call, most time.Duration) (execution.Request, error) {
	call, err := t.parse(c.Call.Arguments)
	if err != nil {
		return execution.Request{}, err
	}
	of := c.Request.Skill(skill.Files)
	if of == nil {
		return execution.Request{}, fmt.Errorf("%s was called without its skill", t.name)
	}
	cfg, err := skill.Config[skill.FilesConfig](of.Config)
	if err != nil {
		return execution.Request{}, err
	}
	call["formats"], call["most"], call["room"] = *cfg.Formats, int64(*cfg.MaxFileMB)<<20, maxDocument
	stdin, err := json.Marshal(call)
	return execution.Request{
		Code: documents, Language: language.Python, Timeout: min(documentTime, most), Metadata: map[string]string{"tool": t.name},
		Input: execution.Input{Stdin: stdin},
	}, err
}

func (t *documentTool) refused(_ *loop.Call, why string) *loop.Outcome {
	return &loop.Outcome{Result: result("It was not done: "+why, true)}
}

func (t *documentTool) outcome(ctx context.Context, s *Sandbox, _ *loop.Call, e *execution.Execution) (*loop.Outcome, error) {
	if e.Status == execution.Timeout {
		return &loop.Outcome{Result: result(fmt.Sprintf("It was ended: it took longer than %s.", e.Timeout), true)}, nil
	}
	in, err := s.Runner.Whole(ctx, e, execution.Stdout)
	var said string
	switch {
	case fault.KindOf(err) == fault.NotFound: // its time has passed
	case err != nil:
		return nil, err
	default:
		if said, _, err = text(in, 8*maxDocument); err != nil {
			return nil, fmt.Errorf("read the answer of %s: %w", e.TraceID, err)
		}
	}
	var answer struct{ Text, Refused string }
	if e.Status != execution.Success || json.Unmarshal([]byte(said), &answer) != nil {
		why := e.Error
		if why == "" {
			why = "the sandbox could not do it"
		}
		return &loop.Outcome{Result: result("It failed: "+why, true)}, nil
	}
	if answer.Refused != "" {
		return &loop.Outcome{Result: result("It was not done: "+answer.Refused, true)}, nil
	}
	return &loop.Outcome{Result: result(answer.Text, false)}, nil
}
