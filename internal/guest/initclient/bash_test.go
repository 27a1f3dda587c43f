package initclient_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
)

func TestBashSemantics(t *testing.T) {
	same(t, guesttest.Bash, nil, []program{
		{name: "pipeline", code: "printf 'b\\na\\n' | sort | tr a-z A-Z\necho ${PIPESTATUS[@]}\nset -o pipefail\nfalse | true; echo $?\n"},
		{name: "names", code: "echo $0 $# \"$@\" $LINENO ${BASH_SOURCE[@]} ${FUNCNAME[@]} $BASH_SUBSHELL $BASH_LINENO\nf() { echo $LINENO ${BASH_SOURCE[@]} ${FUNCNAME[@]} ${BASH_LINENO[@]}; caller 0; }\nf\n"},
		{name: "errexit", code: "set -e\necho before\nfalse\necho after\n"},
		{name: "nounset", code: "set -u\necho $nothing\necho after\n"},
		{name: "exit status", code: "echo x; exit 42\n"},
		{name: "last status", code: "true\n(exit 7)\n"},
		{name: "first status", code: "echo $?\n"},
		{name: "trap", code: "trap 'echo bye $?' EXIT\ntrap 'echo term; exit 3' TERM\ntrap 'echo error at $LINENO' ERR\nfalse\nkill -TERM $$\nsleep 5\n"},
		{name: "terminated", code: "echo x; kill -TERM $$; sleep 5\n"},
		{name: "killed", code: "kill -KILL $$\n"},
		{name: "child killed", code: "bash -c 'kill -SEGV $$'; echo $?\n", blur: true},
		{name: "syntax error", code: "echo one\nif true; then\n"},
		{name: "not found", code: "nosuchcommand\necho $?\n"},
		{name: "not executable", code: "/etc/passwd\n./main.sh\n"},
		{name: "background", code: "(sleep 0.05; echo late) &\nwait $!\necho done $?\njobs\n"},
		{name: "redirections", code: "exec 3>out\necho hidden >&3\nexec 3>&-\ncat out\necho err >&2\necho again >/dev/stderr\necho there >/dev/stdout\nexec 5< <(echo sub)\nread x <&5; echo $x\n"},
		{name: "read at the end", code: "read x; echo $? \"[$x]\"\nmapfile a; echo ${#a[@]}\ncat\n"},
		{name: "here documents", code: "x=1\ncat <<E\n$x $((x+1))\nE\ncat <<'E'\n$x\nE\ncat <<<$x\n"},
		{name: "functions and locals", code: "f() { local x=2; y=3; return 5; }\nx=1; f; echo $? $x $y\n"},
		{name: "arrays", code: "declare -A m=([a]=1); a=(x 'y z'); echo \"${a[@]}\" ${#a[@]} ${m[a]} ${!m[@]}\n"},
		{name: "exec", code: "exec sh -c 'echo $0 $$ | wc -w; ls /proc/self/fd | wc -l'\n"},
		{name: "self", code: "cat $0; wc -l < main.sh; echo $((BASHPID == $$))\n"},
		{name: "source", code: "echo 'echo $BASH_SOURCE $LINENO; return 4' > lib.sh\n. ./lib.sh; echo $?\nsource lib.sh\n"},
		{name: "subprocess", code: "bash -c 'echo $0 $SHLVL ${BASH_ENV-unset}; ls /proc/self/fd | wc -l'\necho $SHLVL\nenv | sort\nls -A\n"},
		{name: "xtrace", code: "set -x\necho a\nf() { :; }\nf\n"},
		{name: "bytes", code: "printf '\\x00\\xff\\x80a'\n"},
		{name: "no newline", code: "echo 1"},
		{name: "debug trap", code: "trap 'echo \"at $LINENO: $BASH_COMMAND\"' DEBUG\ntrue\necho x\n"},
		{name: "coprocess", code: "coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} l; echo $l\n"},
		{name: "seeded random", code: "RANDOM=5; echo $RANDOM $RANDOM\n"},
		{name: "time", code: "TIMEFORMAT=; time true; echo $((SECONDS < 2)) $((EPOCHSECONDS > 0))\n"},
	})
}

func TestBashIntrospection(t *testing.T) {
	// Numbers that no two runs share, and what docs/contribute/guest-protocol.md names.
	const own = `^declare [-airx]+ (BASHPID|EPOCH.*|PPID|RANDOM|SRANDOM|BASH_VERSINFO|BASH_ARGC|PIPESTATUS|SECONDS)`
	same(t, guesttest.Bash, nil, []program{
		{name: "variables", code: "declare -p | grep -vE '" + own + "'\n"},
		{name: "first argument of the last command", code: "echo \"[$_]\"\n"},
		{name: "names of variables", code: "compgen -v | grep -v PIPESTATUS\n"},
		{name: "options", code: "set -o; shopt; echo $- $SHELLOPTS $BASHOPTS\n"},
		{name: "functions, aliases, traps, jobs, hash", code: "declare -F; alias; trap -p; jobs; hash; dirs; history | wc -l; enable -n; complete; bind -p 2>/dev/null | wc -l; echo end\n"},
		{name: "descriptors", code: "ls -l /proc/$$/fd >out; sed 's/.* \\([0-9]* -> \\)/\\1/; s/[0-9]\\{3,\\}/N/' out\n"},
		// But for file locks, which hold the run's mark, and SigQ, which counts signals of all the user's processes. Bash reads the file without a child: while it
		// starts a process, it blocks signals for a moment.
		{name: "limits and signals", code: "ulimit -a | grep -v '^file locks'; umask; while IFS= read -r line; do [[ $line =~ ^(Sig[^Q]|Shd|Cap|NoNew|Umask|Uid|Gid|Groups|Threads) ]] && echo \"$line\"; done </proc/$$/status; tr '\\0' ' ' </proc/$$/cmdline; cat /proc/$$/comm\n"},
		{name: "line numbers in errors", code: "\n\n\necho $((1/0))\nunset -v BASHPID UID\nreadonly x=1\nx=2\n"},
	})
}

func TestBashVariables(t *testing.T) {
	for _, value := range []string{"a=b", "it's \"$HOME\" `id` \\ $(id)\n\ttab", "ü\xff\x01\x7f\x80", strings.Repeat("'", 500)} {
		got, bare := withVariable(t, guesttest.Bash, "declare -p X; printf '%s' \"$X\" | od -c; env | grep -a -A1 ^X=\n", "X="+value)
		compare(t, "stdout", got.stdout, bare.stdout)
		compare(t, "stderr", got.stderr, bare.stderr)
	}
}
