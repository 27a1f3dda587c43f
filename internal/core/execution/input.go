package execution

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/language"
)

// Bounds of what a program is given besides its code and variables, and of the files
// that it gives back.
const (
	MaxArgs     = 256
	MaxArgBytes = 64 << 10 // of all arguments together

	MaxFiles      = 100
	MaxInputBytes = 4 << 20 // stdin and the contents of all files together

	MaxFileName = 1024 // bytes of a whole name
	maxNamePart = 255  // bytes between two slashes

	MaxOutputs     = 20       // paths that a request names
	MaxOutputFiles = 100      // files that a run gives back
	MaxOutputBytes = 32 << 20 // contents of these files together
)

// Input is what a program is given besides its code and variables.
type Input struct {
	Args  []string          // follow the name of the program's own file
	Stdin []byte            // nil for an empty stdin
	Files map[string][]byte // contents by name, relative to the working folder

	// Outputs are paths of files and folders, relative to the working folder. What
	// is there when the program has ended is kept for the caller. A path that ends
	// with a slash is a folder that is made before the program starts.
	Outputs []string

	// Tool has the sandbox's own program for files run, whatever the image holds: Code is
	// no program, but the filetool.Call that it reads.
	Tool bool `json:",omitzero"`

	// Helper says that Code is a program of the platform's in Python, which reads Stdin. It runs
	// isolated: nothing that the sandbox's programs can write becomes a part of it.
	Helper bool `json:",omitzero"`
}

// Empty reports whether a program is given nothing and asked for nothing.
func (in *Input) Empty() bool {
	return len(in.Args) == 0 && len(in.Stdin) == 0 && len(in.Files) == 0 && len(in.Outputs) == 0 && !in.Tool && !in.Helper
}

// OutputFiles are the files that a run gave back, in the order of their contents in
// the blob FilesName.
type OutputFiles struct {
	Files []OutputFile `json:"files,omitempty"`
	// Truncated says that there were more or larger files than are kept.
	Truncated bool `json:"truncated,omitempty"`
}

// OutputFile is a file that a run gave back.
type OutputFile struct {
	Name  string `json:"name"` // relative to the working folder
	Bytes int64  `json:"bytes"`
}

// Bytes is how many bytes the files have together.
func (o *OutputFiles) Bytes() (n int64) {
	for _, f := range o.Files {
		n += f.Bytes
	}
	return n
}

// Find returns a file and where its contents begin in the blob.
func (o *OutputFiles) Find(name string) (f OutputFile, offset int64, ok bool) {
	for _, f := range o.Files {
		if f.Name == name {
			return f, offset, true
		}
		offset += f.Bytes
	}
	return OutputFile{}, 0, false
}

// FilesName is the name in the blob store of the files that an execution gave back.
func FilesName(tenant, traceID string) string {
	return "outputs/" + tenant + "/" + traceID + "/files"
}

// check reports the first thing of in that breaks a rule. l is the program's language.
func (in *Input) check(l Language) error {
	if err := checkArgs(in.Args); err != nil {
		return err
	}
	if len(in.Files) > MaxFiles {
		return invalid("files must have at most %d files", MaxFiles)
	}
	size := len(in.Stdin)
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		if err := CheckFileName("files", name); err != nil {
			return err
		}
		if name == ProgramFile(l) {
			return invalid("files: the name %q is reserved for the program's code", name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, both := in.Files[dir]; both || dir == ProgramFile(l) {
				return invalid("files: %s is a file, but %s needs it as a folder", show(dir), show(name))
			}
		}
		size += len(in.Files[name])
	}
	if size > MaxInputBytes {
		return invalid("stdin and files together must be at most %d bytes", MaxInputBytes)
	}
	if len(in.Outputs) > MaxOutputs {
		return invalid("outputs must have at most %d paths", MaxOutputs)
	}
	for _, name := range in.Outputs {
		if err := CheckFileName("outputs", strings.TrimSuffix(name, "/")); err != nil {
			return err
		}
	}
	return nil
}

func checkArgs(args []string) error {
	if len(args) > MaxArgs {
		return invalid("args must have at most %d arguments", MaxArgs)
	}
	size := 0
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return invalid("args must not contain a NUL character")
		}
		if !utf8.ValidString(arg) {
			return invalid("args must be valid UTF-8")
		}
		size += len(arg)
	}
	if size > MaxArgBytes {
		return invalid("args together must be at most %d bytes", MaxArgBytes)
	}
	return nil
}

// CheckFileName refuses what cannot be the name of a file below the working folder.
// field is what messages call it.
func CheckFileName(field, name string) error {
	switch {
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalid("%s name %s must be UTF-8 without control characters", field, show(name))
	case len(name) > MaxFileName || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxNamePart }):
		return invalid("%s name %s must be at most %d bytes, and %d between slashes", field, show(name), MaxFileName, maxNamePart)
	case name == "" || name == "." || name != path.Clean(name) || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../"):
		return invalid("%s name %s must be a path below the working folder, such as data/in.csv, without . and ..", field, show(name))
	}
	return nil
}

// ProgramFile is the name of the file that a program of a language runs from, in the
// working folder; "" for no language of the table.
func ProgramFile(l Language) string { return language.Get(l).File }
