package agent

import (
	"regexp"
	"strings"
)

// Bounds of a server that is a program.
const (
	maxCommand = 1024 // bytes
	maxArgs    = 64
	maxArg     = 4096 // bytes
	maxEnv     = 64
	maxValue   = 8192 // bytes
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Type is how a server is reached.
func (s *Server) Type() string {
	if s.Command != "" {
		return "stdio"
	}
	return "url"
}

// checkCommand refuses what a server that is a program cannot have, and programs' fields of others.
func (s *Server) checkCommand(path string) error {
	switch {
	case s.Command == "" && len(s.Args)+len(s.Env) > 0:
		return invalid("%s: args and env require command", path)
	case s.Command+s.URL == "":
		return invalid("%s must have url or command", path)
	case s.Command == "":
		return nil
	case s.URL != "" || len(s.Headers) > 0:
		return invalid("%s must have url or command, and not both; headers require url", path)
	case len(s.Command) > maxCommand || strings.ContainsRune(s.Command, 0):
		return invalid("%s.command must have at most %d bytes, and no NUL", path, maxCommand)
	case len(s.Args) > maxArgs:
		return invalid("%s.args must have at most %d entries", path, maxArgs)
	case len(s.Env) > maxEnv:
		return invalid("%s.env must have at most %d variables", path, maxEnv)
	}
	for _, arg := range s.Args {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			return invalid("%s.args must have at most %d bytes each, and no NUL", path, maxArg)
		}
	}
	for name, value := range s.Env {
		if !variablePattern.MatchString(name) || len(value) > maxValue || strings.ContainsRune(value, 0) {
			return invalid("%s.env must have names of letters, digits and _, and values of at most %d bytes without NUL", path, maxValue)
		}
	}
	return nil
}
