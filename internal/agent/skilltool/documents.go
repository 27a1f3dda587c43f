package skilltool

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Files is the name of the skill.
const Files = "file-management"

// Names of its tools.
const (
	readDocumentName    = "read_document"
	convertDocumentName = "convert_document"
	organizeName        = "organize_files"
)

var filing = builtIn{
	Definition: skill.Definition{
		Name: Files, Needs: skill.Unnamed, Extras: []string{requirement.Browser, requirement.Office}, Check: checkConfig[filesConfig],
	},
	instructions: instruct(documentInstructions),
	programs:     documentTools,
	class:        agent.Files,
}

// formats lists the document formats that the skill supports.
var formats = []string{"pdf", "docx", "xlsx", "pptx"}

// filesConfig is the configuration of the skill. Omitted fields use their defaults.
type filesConfig struct {
	Formats   *[]string   `json:"formats,omitzero"` // all if omitted
	MaxFileMB *wire.Whole `json:"max_file_mb,omitzero" minimum:"1" maximum:"200" default:"25"`
}

// formats returns the formats of c, or all.
func (c *filesConfig) formats() []string {
	if c.Formats == nil {
		return formats
	}
	return *c.Formats
}

func (c *filesConfig) check(path string) error {
	if c.Formats != nil {
		if len(*c.Formats) == 0 {
			return invalid("%s.formats must name at least one of %s", path, strings.Join(formats, ", "))
		}
		for i, f := range *c.Formats {
			if !slices.Contains(formats, f) || slices.Contains((*c.Formats)[:i], f) {
				return invalid("%s.formats[%d] must be one of %s, without duplicates", path, i, strings.Join(formats, ", "))
			}
		}
	}
	return whole(path+".max_file_mb", c.MaxFileMB, 1, 200)
}

func documentInstructions(cfg *filesConfig, _ *turn) string {
	return fmt.Sprintf("You work with documents (%s, up to %.0f MiB) and keep the files of the sandbox in order. Read documents with %s and not by guessing from their names. Make other files of them with %s. "+
		"Put files into folders by what they are, with clear names, with %s: try it with dry_run first where much moves, keep originals, and tell the user where things are.",
		strings.ToUpper(strings.Join(cfg.formats(), ", ")), *cfg.MaxFileMB, readDocumentName, convertDocumentName, organizeName)
}

// documentExtras returns the extras that a call needs: an office suite for a PDF file with the layout
// of a document, and a browser for another PDF file.
func documentExtras(tool string, call map[string]any) []string {
	if tool != convertDocumentName {
		return nil
	}
	from, _ := call["file_path"].(string)
	to, _ := call["to_path"].(string)
	switch {
	case !strings.EqualFold(path.Ext(to), ".pdf"), strings.EqualFold(path.Ext(from), ".pdf"):
		return nil
	case slices.Contains(formats, strings.ToLower(strings.TrimPrefix(path.Ext(from), "."))):
		return []string{requirement.Office}
	}
	return []string{requirement.Browser}
}

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
	maxPath      = 4096 // bytes, as in Linux
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
var documentProgram = &sandboxtool.Program{Skill: Files, Code: documents, Input: func(_ *loop.Call, config json.RawMessage, p execution.Policy, call map[string]any) (time.Duration, error) {
	cfg, err := configOf[filesConfig](config)
	if err != nil {
		return 0, err
	}
	call["formats"], call["most"], call["room"] = cfg.formats(), int64(*cfg.MaxFileMB)<<20, maxDocument
	return min(documentTime, p.DefaultTimeout()), nil
}, Extras: documentExtras}

var documentTools = []*sandboxtool.ProgramTool{
	sandboxtool.NewProgramTool(documentProgram, readDocumentName, "read", "Reads the text of a PDF, DOCX, XLSX or PPTX file of the sandbox: headings, paragraphs and tables as Markdown. At most 64 KiB are returned at once.",
		func(in *readDocumentInput) error {
			return errors.Join(checkPath("file_path", in.Path), atLeastOne("first", in.First), atLeastOne("last", in.Last))
		}),
	sandboxtool.NewProgramTool(documentProgram, convertDocumentName, "convert", "Converts a document of the sandbox to another file: PDF, DOCX, XLSX and PPTX to md or txt, XLSX to csv, md and txt to docx, or to pptx (a heading begins a slide, the lines after it are its points), csv to xlsx, and DOCX, XLSX, PPTX, csv, md, txt and html to pdf.",
		func(in *convertInput) error {
			return errors.Join(checkPath("file_path", in.Path), checkPath("to_path", in.To), atLeastOne("sheet", in.Sheet))
		}),
	sandboxtool.NewProgramTool(documentProgram, organizeName, "organize", "Moves and renames files and folders of the sandbox, all or none. Nothing is overwritten.",
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
