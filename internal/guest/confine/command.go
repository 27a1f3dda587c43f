package confine

import (
	"path"
	"slices"
	"strings"
)

// Command is what must not be executed: a program's name or path, and the
// arguments it must begin with for that.
type Command struct {
	Text string // as it was written
	name string
	args []string
}

// ParseCommand reads a command: words between white space.
func ParseCommand(text string) (Command, bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Command{}, false
	}
	return Command{text, words[0], words[1:]}, true
}

// Execution is something that was executed.
type Execution struct {
	File string   // that runs, links resolved; of a script its interpreter
	Name string   // that was asked for, as AT_EXECFN has it: a script's or link's own
	Argv []string // as the program sees it
}

// maxComm is how much of a name a process is called by, in bytes.
const maxComm = 15

// script corrects Name by what the kernel calls the process, which has not run
// yet: by the script where a script was executed. gVisor has its interpreter in
// AT_EXECFN.
func (e *Execution) script(comm string) {
	called := func(file string) bool {
		base := path.Base(file)
		return base[:min(len(base), maxComm)] == comm
	}
	if comm == "" || e.Name != "" && called(e.Name) {
		return
	}
	for _, arg := range e.Argv[min(1, len(e.Argv)):min(3, len(e.Argv))] {
		if called(arg) {
			e.Name = arg
			return
		}
	}
}

// Matches reports whether e is what c names.
func (c Command) Matches(e Execution) bool {
	for _, try := range e.readings() {
		if slices.ContainsFunc(try.names, c.named) && len(try.args) >= len(c.args) && slices.Equal(try.args[:len(c.args)], c.args) {
			return true
		}
	}
	return false
}

// named reports whether a file is called as c says: by its whole path if c is
// one, otherwise by its last part.
func (c Command) named(file string) bool {
	file = strings.TrimSuffix(file, " (deleted)")
	if strings.HasPrefix(c.name, "/") {
		return path.Clean(file) == path.Clean(c.name)
	}
	return file != "" && path.Base(file) == path.Base(c.name)
}

// reading is one way to understand what was executed.
type reading struct {
	names []string
	args  []string
}

// readings are the ways to understand e: as the program it is, as the script it
// is handed to, and as the program that a program for many, or the dynamic
// loader, is asked to be.
func (e Execution) readings() []reading {
	var argv0 string
	var args []string
	if len(e.Argv) > 0 {
		argv0, args = e.Argv[0], e.Argv[1:]
	}
	all := []reading{{[]string{e.File, e.Name, argv0}, args}}
	// Of a script the kernel puts the interpreter, perhaps an option of it, and
	// the script before the arguments.
	for i, arg := range args {
		if i < 2 && e.Name != "" && arg == e.Name {
			all = append(all, reading{[]string{arg}, args[i+1:]})
		}
	}
	switch base := path.Base(e.File); {
	case slices.Contains(many, base):
		for i, arg := range args {
			if applet, ok := strings.CutPrefix(arg, "--coreutils-prog="); ok {
				all = append(all, reading{[]string{applet}, args[i+1:]})
			} else if !strings.HasPrefix(arg, "-") {
				all = append(all, reading{[]string{arg}, args[i+1:]})
				break
			}
		}
	case strings.HasPrefix(base, "ld-") || strings.HasPrefix(base, "ld.so"):
		// Some of its options take a word that is not the program: whatever may be
		// the program is taken for it.
		for i, arg := range args {
			if !strings.HasPrefix(arg, "-") {
				all = append(all, reading{[]string{arg}, args[i+1:]})
			}
		}
	}
	return all
}

// many are programs that are what they are asked to be.
var many = []string{"busybox", "toybox", "coreutils"}
