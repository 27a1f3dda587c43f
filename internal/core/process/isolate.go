package process

import (
	"slices"
	"strings"
)

// Isolation says which of the sandbox's variables a process gets. It matters for processes that
// the platform starts for itself: files in places which a sandbox's programs can write must not
// become code of theirs.
type Isolation int

const (
	// Open is for what the caller starts: every variable.
	Open Isolation = iota
	// Guarded is for programs that the caller configures and the platform starts: every variable but
	// variables that load code from a writable folder. PATH has only folders of the image.
	Guarded
	// Isolated is for helpers: language, proxies and certificates, and a PATH of the image's folders.
	Isolated
)

// Isolate returns the variables of a process, each as "NAME=value". Those named in keep stay as they are.
func (i Isolation) Isolate(env []string, keep ...string) (out []string) {
	if i == Open {
		return env
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case slices.Contains(keep, name):
			out = append(out, v)
		case name == "PATH":
			out = append(out, "PATH="+imagePath(value))
		case i == Isolated && harmless(name), i == Guarded && !loads(name, value):
			out = append(out, v)
		}
	}
	return out
}

// defaultPath is the PATH where nothing is left of the sandbox's own.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imagePath returns the folders of a PATH that the sandbox's programs cannot write.
func imagePath(value string) string {
	folders := slices.DeleteFunc(strings.Split(value, ":"), func(folder string) bool {
		return !strings.HasPrefix(folder, "/") || writable(folder)
	})
	if len(folders) == 0 {
		return defaultPath
	}
	return strings.Join(folders, ":")
}

var passed = []string{
	"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
}

// harmless reports whether a variable cannot make a helper run other code.
func harmless(name string) bool {
	return slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
}

var (
	loaders = []string{
		"BASH_ENV", "ENV", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT",
		"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "GCONV_PATH", "SHELL", "EDITOR", "PAGER",
	}
	loaderPrefixes = []string{"LD_", "PYTHON", "GIT_", "BASH_FUNC_", "npm_config_", "NPM_CONFIG_"}
	// paths are loaders whose values are paths and nothing else.
	paths = []string{"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PYTHONSTARTUP", "PYTHONHOME", "PERL5LIB", "RUBYLIB"}
	// writablePlaces are the folders that programs in a sandbox can write, unless they are root.
	writablePlaces = []string{"/home", "/tmp", "/var/tmp", "/data", "/dev/shm"}
)

// loads reports whether programs load code from what a variable says.
func loads(name, value string) bool {
	if strings.HasPrefix(name, "BASH_FUNC_") {
		return true
	}
	if !slices.Contains(loaders, name) && !slices.ContainsFunc(loaderPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return false
	}
	only := slices.Contains(paths, name) || strings.HasSuffix(name, "PATH")
	return slices.ContainsFunc(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(": =,;\"'", r) }), func(part string) bool {
		return writable(part) || only && !strings.HasPrefix(part, "/")
	})
}

// writable reports whether a path is one that the sandbox's programs can write, or relative to one.
func writable(file string) bool {
	return strings.HasPrefix(file, ".") || strings.Contains(file, "..") ||
		slices.ContainsFunc(writablePlaces, func(place string) bool { return file == place || strings.HasPrefix(file, place+"/") })
}
