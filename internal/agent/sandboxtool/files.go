package sandboxtool

import (
	"encoding/json"
	"reflect"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Names of the file tools' calls in run.ToolUse.
const (
	WriteFile  = "sandbox_write_file"
	ReadFile   = "sandbox_read_file"
	EditFile   = "sandbox_edit_file"
	Grep       = "sandbox_grep"
	Glob       = "sandbox_glob"
	ApplyPatch = "sandbox_apply_patch"
	ShareFile  = "share_file"
)

// What models call the tools with.
type (
	writeInput struct {
		Path    *string `json:"file_path" required:"true" empty:"false" doc:"Relative to the working folder, or absolute."`
		Content *string `json:"content" required:"true" nul:"true" doc:"All that the file has from then on, at most 1 MB."`
	}
	readInput struct {
		Path *string     `json:"file_path" required:"true" empty:"false" doc:"Relative to the working folder, or absolute."`
		From *wire.Whole `json:"start_line,omitzero" doc:"The first line, from 1; the beginning if omitted."`
		To   *wire.Whole `json:"end_line,omitzero" doc:"The last line; as many as fit if omitted."`
	}
	editInput struct {
		Path *string `json:"file_path" required:"true" empty:"false" doc:"Relative to the working folder, or absolute."`
		Old  *string `json:"old_string" required:"true" empty:"false" doc:"The text to replace, exactly as it is in the file, and there once unless replace_all is set."`
		New  *string `json:"new_string" required:"true" doc:"The text in its place."`
		All  *bool   `json:"replace_all,omitzero" doc:"Replace it in every place."`
	}
	grepInput struct {
		Pattern *string `json:"pattern" required:"true" empty:"false" doc:"A regular expression (RE2), which is held against each line."`
		Path    *string `json:"path,omitzero" doc:"A folder or a file; the working folder if omitted."`
		Include *string `json:"include,omitzero" doc:"Only files that match this glob, such as *.py."`
		Fold    *bool   `json:"ignore_case,omitzero" doc:"Upper and lower case are the same."`
	}
	globInput struct {
		Pattern *string `json:"pattern" required:"true" empty:"false" doc:"Such as **/*.csv. ** stands for any number of folders."`
		Path    *string `json:"path,omitzero" doc:"The folder to look in; the working folder if omitted."`
	}
	patchInput struct {
		Patch *string `json:"patch" required:"true" empty:"false" doc:"From *** Begin Patch to *** End Patch."`
	}
	shareInput struct {
		Path *string `json:"file_path" required:"true" empty:"false" doc:"Relative to the working folder, or absolute. Not a folder."`
	}
)

// fileTool is a tool that is a filetool.Call.
type fileTool struct {
	name        string // as the model is given it, and the audit trail of named sandboxes has it
	use         string // its run.ToolUse.Tool
	description string
	schema      []byte
	parse       func(arguments string) (*filetool.Call, error)
	// show fills in what readers see of an answer, and returns what the model reads.
	show1 func(c *filetool.Call, a *filetool.Answer, u *FileUse) string
}

// maxPath bounds a path in bytes, as Linux does.
const maxPath = 4096

// newFileTool makes a tool whose input is a T.
func newFileTool[T any](t fileTool, call func(in *T) filetool.Call) tool {
	t.schema = wire.ForModel(reflect.TypeFor[T](), wire.Models)
	t.parse = func(arguments string) (*filetool.Call, error) {
		in := new(T)
		if err := wire.Arguments.Decode([]byte(arguments), in); err != nil {
			return nil, err
		}
		c := call(in)
		if len(c.Path) > maxPath {
			return nil, fault.New(fault.Invalid, "the path must have at most %d bytes", maxPath)
		}
		return &c, nil
	}
	return &t
}

func fileTools() []tool {
	return []tool{
		newFileTool(fileTool{
			name: "write_file", use: WriteFile, show1: showWrite,
			description: "Writes a file of the sandbox: a new one, or all of one that is there. Folders are made as needed.",
		}, func(in *writeInput) filetool.Call {
			return filetool.Call{Op: filetool.Write, Path: *in.Path, Content: *in.Content}
		}),
		newFileTool(fileTool{
			name: "read_file", use: ReadFile, show1: showRead,
			description: "Reads a text file of the sandbox, or some of its lines. At most 64 KiB are returned at once.",
		}, func(in *readInput) filetool.Call {
			return filetool.Call{Op: filetool.Read, Path: *in.Path, From: whole(in.From), To: whole(in.To)}
		}),
		newFileTool(fileTool{
			name: "edit_file", use: EditFile, show1: showEdit,
			description: "Replaces text in a file of the sandbox. The text must be exactly as it is in the file, and there once, unless replace_all is set.",
		}, func(in *editInput) filetool.Call {
			return filetool.Call{Op: filetool.Edit, Path: *in.Path, Old: *in.Old, New: *in.New, All: orZero(in.All)}
		}),
		newFileTool(fileTool{
			name: "grep", use: Grep, show1: showGrep,
			description: "Looks for a regular expression in the files of the sandbox and returns the lines that match, with their numbers.",
		}, func(in *grepInput) filetool.Call {
			return filetool.Call{Op: filetool.Grep, Pattern: *in.Pattern, Path: orZero(in.Path), Include: orZero(in.Include), Fold: orZero(in.Fold)}
		}),
		newFileTool(fileTool{
			name: "glob", use: Glob, show1: showGlob,
			description: "Lists the files and folders of the sandbox that match a pattern.",
		}, func(in *globInput) filetool.Call {
			return filetool.Call{Op: filetool.Glob, Pattern: *in.Pattern, Path: orZero(in.Path)}
		}),
		newFileTool(fileTool{
			name: "apply_patch", use: ApplyPatch, show1: showPatch, description: patchHelp,
		}, func(in *patchInput) filetool.Call {
			return filetool.Call{Op: filetool.Patch, Patch: *in.Patch}
		}),
		newFileTool(fileTool{
			name: "share_file", use: ShareFile, show1: showShare,
			description: "Gives a file of the sandbox to the user, who can download it from then on. At most 32 MiB.",
		}, shareCall),
	}
}

const patchHelp = `Changes several files of the sandbox at once, all or none. The patch is:
*** Begin Patch
*** Add File: path
+each line of the new file
*** Update File: path
@@ a line before the change, such as the function's, to find the place
 a line that stays
-a line that goes
+a line that comes
*** Delete File: path
*** End Patch
"*** Move to: path" after "*** Update File" moves the file.`

// whole is a line number; what is none is refused by the tool, which knows the lines.
func whole(n *wire.Whole) int64 {
	if n == nil || *n < 1 {
		return 0
	}
	return int64(min(*n, 1<<40))
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// FileUse is the Output of a run.ToolUse of the file tools. Which fields it has depends on
// the tool.
type FileUse struct {
	Execution string `json:"execution,omitempty"` // trace id

	Size    *int64  `json:"size,omitempty"`
	Content *string `json:"content,omitempty"`
	From    int64   `json:"from,omitempty"`
	Lines   *int64  `json:"lines,omitempty"`
	Message string  `json:"message,omitempty"`

	Files     []string `json:"files,omitempty"`
	Count     *int64   `json:"count,omitempty"`
	Truncated bool     `json:"truncated,omitempty"`

	Added    []string `json:"added,omitempty"`
	Modified []string `json:"modified,omitempty"`
	Deleted  []string `json:"deleted,omitempty"`

	// Of a file that was shared.
	FileID    string `json:"file_id,omitempty"`
	Name      string `json:"name,omitempty"`   // for the user
	Stored    string `json:"stored,omitempty"` // in the execution's files
	CreatedAt int64  `json:"created_at,omitempty"`
}

// ReadUse reads the Output of a file tool.
func ReadUse(output json.RawMessage) (u FileUse, err error) {
	if len(output) > 0 {
		err = json.Unmarshal(output, &u)
	}
	return u, err
}
