package guest

import "strings"

// atStart lists, per language, the variables that its interpreter reads before
// it comes to the hook, so that setting them later is not the same. A name that
// ends in "*" stands for all that begin so. It errs on the side of starting anew.
var atStart = map[string][]string{
	"": {
		"LD_*", "MALLOC_*", "GLIBC_TUNABLES", "LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "LOCPATH", "NLSPATH",
		"PATH", "HOME", "OPENSSL_*", "SSL_CERT_*", "GCONV_PATH", "RES_OPTIONS", "HOSTALIASES", "LOCALDOMAIN",
	},
	Python: {
		"PYTHON*", "OMP_*", "GOMP_*", "KMP_*", "OPENBLAS_*", "GOTO_NUM_THREADS", "BLIS_*", "MKL_*", "VECLIB_*",
		"NUMEXPR_*", "NPY_*", "NUMPY_*", "PANDAS_*", "PYARROW_*", "ARROW_*", "MPLCONFIGDIR", "MPLBACKEND", "MATPLOTLIBRC",
		"XDG_*", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__",
	},
	Node: {
		"NODE_*", "UV_*", "ICU_*", "NO_COLOR", "FORCE_COLOR", "V8_*",
	},
	// Most of these are Bash's own variables, which it treats in its own way
	// when it finds them in its environment.
	Bash: {
		"BASH*", "COMP_*", "COPROC", "HIST*", "READLINE_*", "EPOCH*", "SHELLOPTS", "POSIXLY_CORRECT", "ENV", "SHLVL",
		"PWD", "OLDPWD", "IFS", "PS0", "PS1", "PS2", "PS3", "PS4", "PPID", "UID", "EUID", "GROUPS", "DIRSTACK", "FUNCNAME",
		"FUNCNEST", "GLOBIGNORE", "HOSTNAME", "HOSTTYPE", "HOSTFILE", "MACHTYPE", "OSTYPE", "OPTARG", "OPTERR", "OPTIND",
		"PIPESTATUS", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "LINES", "COLUMNS", "TERM", "TERMCAP", "TERMINFO", "TMOUT",
		"TIMEFORMAT", "IGNOREEOF", "INPUTRC", "MAIL", "MAILCHECK", "MAILPATH", "MAPFILE", "REPLY", "EXECIGNORE", "FIGNORE",
		"FCEDIT", "CDPATH", "CHILD_MAX", "PROMPT_*", "INSIDE_EMACS", "EMACS", "TEXTDOMAIN*", "_",
	},
}

// ReadAtStart reports whether a language's interpreter may read a variable when
// it starts. Where a request changes one of those, run its program with Warm
// false.
func ReadAtStart(language, name string) bool {
	for _, list := range [][]string{atStart[""], atStart[language]} {
		for _, pattern := range list {
			if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, prefix) || name == pattern {
				return true
			}
		}
	}
	return false
}
