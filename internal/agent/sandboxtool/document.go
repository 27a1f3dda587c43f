package sandboxtool

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// documentSource is the program that does what models ask for of documents, and makerSource
// the part of it that makes them. They need Python's own library alone; to read PDF files
// pypdf or pdftotext, and to make them a browser, or LibreOffice.
//
//go:embed files/documents.py
var documentSource string

//go:embed files/make.py
var makerSource string

var documents = chromium + makerSource + documentSource

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
		Last  *wire.Whole `json:"last,omitzero" doc:"The last one; as many as fit if omitted."`
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

// documentProgram is what the tools of the skill for files run.
var documentProgram = &program{of: skill.Files, code: documents, input: func(_ *loop.Call, config json.RawMessage, p execution.Policy, call map[string]any) (time.Duration, error) {
	cfg, err := skill.Config[skill.FilesConfig](config)
	if err != nil {
		return 0, err
	}
	call["formats"], call["most"], call["room"] = *cfg.Formats, int64(*cfg.MaxFileMB)<<20, maxDocument
	return min(documentTime, p.DefaultTimeout()), nil
}}

var documentTools = []*programTool{
	newProgramTool(documentProgram, skill.ReadDocumentTool, "read", "Reads the text of a PDF, DOCX, XLSX or PPTX file of the sandbox: headings, paragraphs and tables as Markdown. At most 64 KiB are returned at once.",
		func(in *readDocumentInput) error {
			return errors.Join(checkPath("file_path", in.Path), atLeastOne("first", in.First), atLeastOne("last", in.Last))
		}),
	newProgramTool(documentProgram, skill.ConvertDocumentTool, "convert", "Converts a document of the sandbox to another file: PDF, DOCX, XLSX and PPTX to md or txt, XLSX to csv, md and txt to docx, or to pptx (a heading begins a slide, the lines after it are its points), csv to xlsx, and DOCX, XLSX, PPTX, csv, md, txt and html to pdf.",
		func(in *convertInput) error {
			return errors.Join(checkPath("file_path", in.Path), checkPath("to_path", in.To), atLeastOne("sheet", in.Sheet))
		}),
	newProgramTool(documentProgram, skill.OrganizeTool, "organize", "Moves and renames files and folders of the sandbox, all or none. Nothing is overwritten.",
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
