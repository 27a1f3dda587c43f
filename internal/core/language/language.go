// Package language is the one table of the languages that code is run in.
//
// Requests, tools, the command line, images, warm sandboxes, code contexts and process 1
// of a sandbox go by it: a new language is an entry of table.go, and its hooks in
// internal/guest/hook if it has any. The package is data and imports next to nothing,
// because process 1 is linked with it.
package language

import "strings"

// Name names a language in requests, records and messages to the guest.
type Name string

// Language is what Atoll knows of a language.
type Language struct {
	Name  Name
	Title string // in prose, such as "Node.js"

	// Extensions are those of files that hold programs, with the dot, in lower case. No
	// two languages share one.
	Extensions []string
	// File is the name under which a program is put into its working folder and run.
	File string

	// Programs are the names that the interpreter has on the PATH of an image, the
	// preferred first. A program is run as Programs[0] File ARGS.
	Programs []string
	// Version are the arguments with which the interpreter prints its version alone in
	// the first line of stdout.
	Version []string
	// Site says that Version prints a second line: the folder of site packages, in which
	// Python reads .pth files.
	Site bool
	// Major is the one major version that programs are for; 0 for any.
	Major int
	// Import are the arguments that import modules, whose names follow the last of them,
	// separated by commas. nil for a language without modules to import ahead.
	Import []string
	// Repository of registries has images of this language, for which the default image
	// can stand, such as "node" of "node:22". "" for none.
	Repository string

	// Memory is how many bytes a warm sandbox takes, until one was measured.
	Memory int64
	// AtStart lists variables that the interpreter reads before it comes to its hook, so
	// that setting them later is not the same, separated by spaces. A name that ends in
	// "*" stands for all that begin so. It errs on the side of starting anew.
	AtStart string

	Warm    Warm
	Context Context
}

// Warm is how an interpreter is made to wait, within its start-up, for its program.
type Warm struct {
	// Hook is the file of internal/guest/hook that the interpreter runs as it starts. ""
	// for a language whose interpreter starts with its program; the other fields mean
	// nothing then.
	Hook string
	// Variable is set to Prefix and the path of the hook, which makes the interpreter run
	// it first. "" for a hook that a .pth file in the folder of site packages runs.
	Variable, Prefix string
	// FD is where the hook finds its control pipe; FD+1 is for its report.
	FD int
	// Script says that the hook reads its message as a shell script. Any other reads the
	// binary one.
	Script bool
	// LastWord says that the hook tells the end of a program before its process has ended.
	LastWord bool
	// Settle says that the hook of a restored interpreter can map its memory in before the
	// program comes.
	Settle bool
	// Fork says that the hook can fork an interpreter for each of several programs.
	Fork bool
	// Looked lists what the interpreter has looked for in the home before it came to the
	// hook, separated by spaces. Where one of them is there, the program gets an
	// interpreter of its own. A path that ends in "*" stands for all that begin so.
	Looked string
}

// Context is how an interpreter is started that stays, for a code context.
type Context struct {
	// Hook is the file of internal/guest/hook that the interpreter runs. "" for a
	// language without contexts; the other fields mean nothing then.
	Hook string
	// Parts lists the files of that folder that the hook loads when code needs them.
	Parts []string
	// Flags come before the hook.
	Flags []string
	// Thread says that, while code runs, another thread hears of an interrupt, by SIGURG.
	Thread bool
	// Forks says that the interpreter forks while code runs. A process can lose an interrupt
	// while it is being forked, so Atoll repeats the interrupt.
	Forks bool
	// NoNUL says that code cannot hold a NUL byte.
	NoNUL bool
	// Keyed says that the hook knows the run that it had last, so that a run under a key is
	// begun once.
	Keyed bool
}

// commonAtStart lists the variables that every program reads as it starts, in the form of
// AtStart.
const commonAtStart = "LD_* MALLOC_* GLIBC_TUNABLES LANG LANGUAGE LC_* TZ TZDIR LOCPATH NLSPATH " +
	"PATH HOME OPENSSL_* SSL_CERT_* GCONV_PATH RES_OPTIONS HOSTALIASES LOCALDOMAIN"

// ReadsAtStart reports whether the interpreter may read a variable before it comes to its
// hook. A program of a request that sets one needs an interpreter of its own.
func (l *Language) ReadsAtStart(variable string) bool {
	return listed(commonAtStart, variable) || listed(l.AtStart, variable)
}

func listed(patterns, name string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, prefix) || name == pattern {
			return true
		}
	}
	return false
}

// Default is the language of a request that names none.
const Default = Python

// All lists the languages, the default first. It must not be changed.
func All() []Language { return table }

// none is the language of a name that is not in the table.
var none Language

// Get returns the language of a name; for one that is not in the table, such as the name
// in a record of a later version, a language without a name that has nothing.
func Get(name Name) *Language {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return &none
}

// Known reports whether the table has a name.
func Known(name Name) bool { return Get(name) != &none }

// ByExtension returns the language of files whose names end with extension, or one
// without a name.
func ByExtension(extension string) *Language {
	extension = strings.ToLower(extension)
	for i := range table {
		for _, e := range table[i].Extensions {
			if e == extension {
				return &table[i]
			}
		}
	}
	return &none
}

// ByRepository returns the language of the images of a repository, or one
// without a name.
func ByRepository(repository string) *Language {
	for i := range table {
		if r := table[i].Repository; r != "" && r == repository {
			return &table[i]
		}
	}
	return &none
}

// Names lists the names of all languages, the default first.
func Names() []Name {
	names := make([]Name, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

// ContextNames lists the names of those that have code contexts.
func ContextNames() []Name {
	var names []Name
	for i := range table {
		if table[i].Context.Hook != "" {
			names = append(names, table[i].Name)
		}
	}
	return names
}

// Extensions lists those of all languages.
func Extensions() []string {
	var all []string
	for i := range table {
		all = append(all, table[i].Extensions...)
	}
	return all
}

// Titles lists all languages in prose, such as "Python, Node.js or Bash".
func Titles(conjunction string) string {
	titles := make([]string, len(table))
	for i := range table {
		titles[i] = table[i].Title
	}
	return Join(titles, ", ", " "+conjunction+" ")
}

// Join lists words, with last between the last two of them: "a, b or c".
func Join[T ~string](words []T, separator, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(last)
		default:
			b.WriteString(separator)
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// Choices lists what a field of type Name can be, the default first.
func (Name) Choices() []string { return texts(Names()) }

// ContextName is a Name in requests and answers about code contexts.
type ContextName string

// Choices lists what a field of type ContextName can be, the default first.
func (ContextName) Choices() []string { return texts(ContextNames()) }

func texts(names []Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}
