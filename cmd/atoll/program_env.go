package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// programEnv are the flags that give a program variables.
type programEnv struct {
	app   *cli
	vars  []string
	files []string
}

func (e *programEnv) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&e.vars, "env", "e", nil, "variable for the program, NAME=VALUE, or NAME to pass its current value; may be repeated")
	flags.StringArrayVar(&e.files, "env-file", nil, "file with variables, one per line, in the form of -e; may be repeated")
}

// values are the variables that the flags name. -e wins over files, and what comes
// later over what came before.
func (e *programEnv) values() (map[string]string, error) {
	out := map[string]string{}
	for _, path := range e.files {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			line := strings.TrimLeft(strings.TrimSuffix(lines.Text(), "\r"), " \t")
			if line == "" || line[0] == '#' {
				continue
			}
			if !e.set(out, line) {
				_ = file.Close() // it was only read
				return nil, wrong("--env-file %s, line %d: want NAME=VALUE or NAME", path, n)
			}
		}
		err = lines.Err()
		_ = file.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("--env-file %s: %w", path, err)
		}
	}
	for _, arg := range e.vars {
		if !e.set(out, arg) {
			return nil, wrong("--env %s: want NAME=VALUE or NAME", arg)
		}
	}
	return out, nil
}

// set takes NAME=VALUE, or NAME for the value of this command's own environment: a
// variable that is not set here is not set there.
func (e *programEnv) set(out map[string]string, arg string) bool {
	name, value, given := strings.Cut(arg, "=")
	if !given {
		if value = e.app.getenv(name); value == "" {
			return name != ""
		}
	}
	out[name] = value
	return name != ""
}
