package execution

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/language"
)

// Limits of a program's arguments, stdin and files, and of the files that it returns.
const (
	MaxArgs     = 256
	MaxArgBytes = 64 << 10 // of all arguments together

	MaxFiles      = 100
	MaxInputBytes = 4 << 20 // stdin and the contents of all files together

	MaxFileName = 1024 // bytes of the whole name
	maxNamePart = 255  // bytes between two slashes

	MaxOutputs     = 20       // paths in a request
	MaxOutputFiles = 100      // files returned by a run
	MaxOutputBytes = 32 << 20 // contents of these files together
)

// Input is what a program receives besides its code and variables.
type Input struct {
	Args  []string          // after the name of the program's own file
	Stdin []byte            // nil for an empty stdin
	Files map[string][]byte // contents by name, relative to the working directory

	// Outputs are paths of files and directories, relative to the working directory. When the
	// program ends, Atoll stores them for the caller. A trailing slash means a directory that Atoll
	// creates before the program starts.
	Outputs []string

	// Tool runs the sandbox's built-in file program, regardless of the image. Code is then the
	// filetool.Call that it reads, not a program.
	Tool bool `json:",omitzero"`

	// Helper says that Code is a Python program of the platform, which reads Stdin. It
	// runs isolated, so that programs in the sandbox cannot inject code into it.
	Helper bool `json:",omitzero"`
}

// Empty reports whether a program receives no input and returns no files.
func (in *Input) Empty() bool {
	return len(in.Args) == 0 && len(in.Stdin) == 0 && len(in.Files) == 0 && len(in.Outputs) == 0 && !in.Tool && !in.Helper
}

// OutputFiles lists the files that a run returned, in the order of their contents in the blob
// FilesName.
type OutputFiles struct {
	Files []OutputFile `json:"files,omitempty"`
	// Truncated says that the run left more or larger files than Atoll keeps.
	Truncated bool `json:"truncated,omitempty"`
}

// OutputFile is a file that a run returned.
type OutputFile struct {
	Name  string `json:"name"` // relative to the working directory
	Bytes int64  `json:"bytes"`
}

// Bytes returns the total size of the files.
func (o *OutputFiles) Bytes() (n int64) {
	for _, f := range o.Files {
		n += f.Bytes
	}
	return n
}

// Find returns a file and the offset of its contents in the blob.
func (o *OutputFiles) Find(name string) (f OutputFile, offset int64, ok bool) {
	for _, f := range o.Files {
		if f.Name == name {
			return f, offset, true
		}
		offset += f.Bytes
	}
	return OutputFile{}, 0, false
}

// FilesName returns the blob store name of an execution's output files.
func FilesName(tenant, traceID string) string {
	return "outputs/" + tenant + "/" + traceID + "/files"
}

// check returns an error for the first invalid part of in. l is the program's language.
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

// CheckFileName validates a file name below the working directory. Errors call it field.
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

// ProgramFile returns the name of the file in the working directory that holds the program; "" for
// an unknown language.
func ProgramFile(l Language) string { return language.Get(l).File }
