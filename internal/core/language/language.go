// Package language is the single table of the languages that Atoll runs.
//
// Requests, tools, the command line, images, warm sandboxes, code contexts and process 1 of a
// sandbox use it. To add a language, add an entry to table.go and any hooks to internal/guest/hook.
// The package is data with almost no imports, because it is linked into process 1.
package language

import "strings"

// Name identifies a language in requests, records and messages to the guest.
type Name string

// Language describes a language.
type Language struct {
	Name  Name
	Title string // display name, such as "Node.js"

	// Extensions lists the file extensions of programs, with the dot, in lower case. No two
	// languages share one.
	Extensions []string
	// File is the name of the program's file in the working directory.
	File string

	// Programs lists the interpreter's names on the PATH of an image, the preferred one first.
	// Atoll runs a program as Programs[0] File ARGS.
	Programs []string
	// Version is the arguments that make the interpreter print only its version on the first line
	// of stdout.
	Version []string
	// Site says that Version prints a second line: the site-packages directory, where Python reads
	// .pth files.
	Site bool
	// Major is the required major version of the interpreter; 0 for any.
	Major int
	// Import is the arguments that import modules; the comma-separated module names follow. nil if
	// the language cannot import modules ahead of time.
	Import []string
	// Repository is a registry repository with images of this language, such as "node" of
	// "node:22", which the default image can replace; "" for none.
	Repository string

	// Memory is the estimated size of a warm sandbox, in bytes, until Atoll has measured one.
	Memory int64
	// AtStart lists, separated by spaces, variables that the interpreter reads before its hook
	// runs, so that setting them later has no effect. A trailing "*" matches any suffix. When in
	// doubt, list the variable: the cost is a new interpreter.
	AtStart string

	Warm    Warm
	Context Context
}

// Warm says how to hold an interpreter during startup until its program arrives.
type Warm struct {
	// Hook is the file in internal/guest/hook that the interpreter runs on startup; "" if the
	// language does not support waiting. The other fields are then unused.
	Hook string
	// Variable is set to Prefix plus the path of the hook, which makes the interpreter run the hook
	// first. It is "" if a .pth file in site-packages runs the hook.
	Variable, Prefix string
	// FD is the descriptor of the hook's control pipe. FD+1 is for its report.
	FD int
	// Script says that the hook reads its message as a shell script instead of the binary format.
	Script bool
	// LastWord says that the hook reports the end of a program before the process exits.
	LastWord bool
	// Settle says that the hook of a restored interpreter can map its memory in before the program
	// arrives.
	Settle bool
	// Fork says that the hook can fork an interpreter for each of several programs.
	Fork bool
	// Looked lists, separated by spaces, the paths in the home directory that the interpreter
	// checks before its hook runs. If one exists, the program gets a new interpreter. A trailing
	// "*" matches any suffix.
	Looked string
}

// Context says how to start the long-lived interpreter of a code context.
type Context struct {
	// Hook is the file in internal/guest/hook that the interpreter runs; "" if the language has no
	// contexts. The other fields are then unused.
	Hook string
	// Parts lists files of that directory that the hook loads on demand.
	Parts []string
	// Flags are the arguments before the hook.
	Flags []string
	// Thread says that a separate thread receives interrupts, as SIGURG, while code runs.
	Thread bool
	// Forks says that the interpreter forks while code runs. A process can lose an interrupt during
	// a fork, so Atoll repeats the interrupt.
	Forks bool
	// NoNUL says that code must not contain a NUL byte.
	NoNUL bool
	// Keyed says that the hook remembers its last run, so that it starts a run with a key only
	// once.
	Keyed bool
}

// commonAtStart lists the variables that every program reads on startup, in the format of AtStart.
const commonAtStart = "LD_* MALLOC_* GLIBC_TUNABLES LANG LANGUAGE LC_* TZ TZDIR LOCPATH NLSPATH " +
	"PATH HOME OPENSSL_* SSL_CERT_* GCONV_PATH RES_OPTIONS HOSTALIASES LOCALDOMAIN"

// ReadsAtStart reports whether the interpreter may read a variable before its hook runs. A program
// that sets such a variable needs a new interpreter.
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

// All lists the languages, the default first. Callers must not modify it.
func All() []Language { return table }

// none is the language of unknown names.
var none Language

// Get returns the language with a name. For an unknown name, such as one from a later version's
// record, it returns a Language with zero fields.
func Get(name Name) *Language {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return &none
}

// Known reports whether the table contains a name.
func Known(name Name) bool { return Get(name) != &none }

// ByExtension returns the language for a file extension, or a zero Language.
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

// ByRepository returns the language of a repository's images, or a zero Language.
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

// ContextNames lists the names of the languages that have code contexts.
func ContextNames() []Name {
	var names []Name
	for i := range table {
		if table[i].Context.Hook != "" {
			names = append(names, table[i].Name)
		}
	}
	return names
}

// Extensions lists the file extensions of all languages.
func Extensions() []string {
	var all []string
	for i := range table {
		all = append(all, table[i].Extensions...)
	}
	return all
}

// Titles lists the display names of all languages, such as "Python, Node.js or Bash".
func Titles(conjunction string) string {
	titles := make([]string, len(table))
	for i := range table {
		titles[i] = table[i].Title
	}
	return Join(titles, ", ", " "+conjunction+" ")
}

// Join joins words with separator, and the last two with last: "a, b or c".
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

// Choices lists the values of a field of type Name, the default first.
func (Name) Choices() []string { return texts(Names()) }

// ContextName is a Name in requests and answers about code contexts.
type ContextName string

// Choices lists the values of a field of type ContextName, the default first.
func (ContextName) Choices() []string { return texts(ContextNames()) }

func texts(names []Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}
