package language

// The names that code other than the table needs, such as examples and tests. A new
// language needs none.
const (
	Python Name = "python"
	Node   Name = "node"
	Bash   Name = "bash"
)

const mib = 1 << 20

// table is every language, the default first.
var table = []Language{
	{
		Name:       Python,
		Title:      "Python",
		Extensions: []string{".py"},
		File:       "main.py",
		Programs:   []string{"python3", "python"},
		// A folder of site packages that is missing is not on sys.path.
		Version: []string{"-I", "-c", "import os, site, sys\n" +
			"print('.'.join(map(str, sys.version_info[:3])))\n" +
			"d = site.getsitepackages()\n" +
			"print(([p for p in d if os.path.isdir(p)] or d)[-1])"},
		Site:       true,
		Major:      3,
		Import:     []string{"-c", "import "},
		Repository: "python",
		Memory:     16 * mib,
		AtStart: "PYTHON* OMP_* GOMP_* KMP_* OPENBLAS_* GOTO_NUM_THREADS BLIS_* MKL_* VECLIB_* " +
			"NUMEXPR_* NPY_* NUMPY_* PANDAS_* PYARROW_* ARROW_* MPLCONFIGDIR MPLBACKEND MATPLOTLIBRC " +
			"XDG_* VIRTUAL_ENV __PYVENV_LAUNCHER__",
		Warm: Warm{
			Hook: "warm.py", FD: 3, LastWord: true, Settle: true, Fork: true,
			// It looks for its user's packages. npm has a folder beside them.
			Looked: ".local/lib/python*",
		},
		Context: Context{
			Hook: "context.py", Keyed: true,
			Parts: []string{"context_ipython.py", "context_libraries.py", "context_shell.py"},
		},
	},
	{
		Name:       Node,
		Title:      "Node.js",
		Extensions: []string{".js", ".mjs", ".cjs"},
		File:       "main.js",
		Programs:   []string{"node", "nodejs"},
		Version:    []string{"-p", "process.versions.node"},
		Repository: "node",
		Memory:     48 * mib,
		AtStart:    "NODE_* UV_* ICU_* NO_COLOR FORCE_COLOR V8_*",
		Warm: Warm{
			Hook: "warm.cjs", Variable: "NODE_OPTIONS", Prefix: "--require=", LastWord: true,
			// Node keeps descriptors of its own; a high number leaves it those it would
			// have had.
			FD:     100,
			Looked: "package.json", // up to version 21 it remembers that there was none
		},
		Context: Context{
			Hook: "context.cjs", Flags: []string{"--expose-internals", "--no-force-async-hooks-checks"},
			Thread: true,
		},
	},
	{
		Name:       Bash,
		Title:      "Bash",
		Extensions: []string{".sh", ".bash"},
		File:       "main.sh",
		Programs:   []string{"bash"},
		Version:    []string{"-c", "echo $BASH_VERSION"},
		Memory:     16 * mib,
		// Most of these are Bash's own variables, which it treats in its own way when it
		// finds them in its environment.
		AtStart: "BASH* COMP_* COPROC HIST* READLINE_* EPOCH* SHELLOPTS POSIXLY_CORRECT ENV SHLVL " +
			"PWD OLDPWD IFS PS0 PS1 PS2 PS3 PS4 PPID UID EUID GROUPS DIRSTACK FUNCNAME " +
			"FUNCNEST GLOBIGNORE HOSTNAME HOSTTYPE HOSTFILE MACHTYPE OSTYPE OPTARG OPTERR OPTIND " +
			"PIPESTATUS RANDOM SRANDOM SECONDS LINENO LINES COLUMNS TERM TERMCAP TERMINFO TMOUT " +
			"TIMEFORMAT IGNOREEOF INPUTRC MAIL MAILCHECK MAILPATH MAPFILE REPLY EXECIGNORE FIGNORE " +
			"FCEDIT CDPATH CHILD_MAX PROMPT_* INSIDE_EMACS EMACS TEXTDOMAIN* _",
		// It has no last word: to look for one costs more than it could save.
		Warm:    Warm{Hook: "warm.bash", Variable: "BASH_ENV", FD: 3, Script: true},
		Context: Context{Hook: "context.bash", Forks: true, NoNUL: true},
	},
}
