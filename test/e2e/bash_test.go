package e2e

import (
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

func TestBash(t *testing.T) {
	checkSemantics(t, atolltest.Bash, []semantic{
		{name: "echo", code: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
		{name: "name and arguments", code: "echo $0 $# $- \"$BASH_SOURCE\" ${#BASH_SOURCE[@]} $BASH_SUBSHELL $SHLVL", stdout: "main.sh 0 hB main.sh 1 0 1\n"},
		{name: "last argument", code: "echo $_; echo $_", stdout: "bash\nbash\n"},
		{name: "line numbers", code: "echo $LINENO\n\necho $LINENO\nf() { echo $LINENO ${FUNCNAME[@]} ${BASH_LINENO[@]}; }\nf", stdout: "1\n3\n4 f main 5 0\n"},
		{name: "command not found", code: "true\nno_such_command\necho $?", stdout: "127\n", stderr: "main.sh: line 2: no_such_command: command not found\n"},
		{name: "syntax error", code: "echo a\nif then\n", stdout: "a\n", exit: 2, stderr: "main.sh: line 2: syntax error near unexpected token `then'\nmain.sh: line 2: `if then'\n"},
		{name: "unterminated quote", code: "echo 'a\n", exit: 2, stderr: "main.sh: line 1: unexpected EOF while looking for matching `''\n"},
		{name: "empty", code: "\n"},
		{name: "no newline at the end", code: "printf x", stdout: "x"},
		{name: "carriage return", code: "echo a\r\n", stdout: "a\r\n"},
		{name: "working directory", code: "pwd; ls -A; echo ~; echo \"${OLDPWD-unset}\"", stdout: "/home/user\nmain.sh\n/home/user\nunset\n"},
		{name: "source file", code: "wc -l < $0; head -n1 $0\n", stdout: "1\nwc -l < $0; head -n1 $0\n"},

		{name: "exit", code: "exit 7", exit: 7},
		{name: "exit wraps", code: "exit 263", exit: 7},
		{name: "last status", code: "false", exit: 1},
		{name: "exit status of a function", code: "f() { return 9; }; f", exit: 9},
		{name: "errexit", code: "set -e\nfalse\necho no", exit: 1},
		{name: "nounset", code: "set -u\necho $nothing\necho no", exit: 1, stderr: "main.sh: line 2: nothing: unbound variable\n"},
		{name: "pipefail", code: "set -euo pipefail\nfalse | true\necho no", exit: 1},
		{name: "pipeline", code: "printf '3\\n1\\n2\\n' | sort | head -n 2 | tr '\\n' ,; echo ${PIPESTATUS[@]}", stdout: "1,2,0 0 0 0\n"},
		{name: "xtrace", code: "set -x\necho a", stdout: "a\n", stderr: "+ echo a\n"},
		{name: "exec", code: "exec echo replaced", stdout: "replaced\n"},
		{name: "self kill", code: "kill -TERM $$", exit: 143},
		{name: "kill 9", code: "kill -9 $$", exit: 137},
		{name: "child's signal", code: "sh -c 'kill -SEGV $$'\necho $?", stdout: "139\n", stderr: "~main.sh: line 1: +\\d+ Segmentation fault +(\\(core dumped\\) )?sh -c 'kill -SEGV \\$\\$'\n"},

		{name: "trap EXIT", code: "trap 'echo bye' EXIT\necho hello\nexit 3", stdout: "hello\nbye\n", exit: 3},
		{name: "trap ERR", code: "trap 'echo failed at $LINENO' ERR\ntrue\nfalse\necho on", stdout: "failed at 3\non\n"},
		{name: "trap signal", code: "trap 'echo got' USR1\nkill -USR1 $$\necho on", stdout: "got\non\n"},
		{name: "trap list", code: "trap", stdout: ""},
		{name: "trap DEBUG", code: "trap 'echo d' DEBUG\n:\n", stdout: "d\n"},
		{name: "EXIT trap on errexit", code: "set -e\ntrap 'echo $?' EXIT\nfalse", stdout: "1\n", exit: 1},

		{name: "background and wait", code: "mkfifo p; (read -r x < p; echo bg) &\necho fg; echo > p\nwait\necho done $(jobs | wc -l)", stdout: "fg\nbg\ndone 0\n"},
		{name: "wait for status", code: "(exit 5) & wait $!; echo $?", stdout: "5\n"},
		{name: "coproc", code: "coproc cat\necho hi >&${COPROC[1]}\nread -r x <&${COPROC[0]}\necho $x", stdout: "hi\n"},
		{name: "process substitution", code: "diff <(echo a) <(echo a) && cat <(echo b); echo c > >(cat); wait", stdout: "b\nc\n"},
		{name: "here documents", code: "x=5\ncat <<A\n$x\nA\ncat <<'B'\n$x\nB\ncat <<< three", stdout: "5\n$x\nthree\n"},
		{name: "redirections", code: "{ echo o; echo e >&2; } > f 2>&1; cat f; exec 9<f; read -r l <&9; echo $l; exec 9<&-", stdout: "o\ne\no\n"},
		{name: "/dev/stdout and /dev/fd", code: "echo a > /dev/stdout; echo b > /dev/stderr; echo c > /dev/fd/1; echo d > /proc/self/fd/1", stdout: "a\nc\nd\n", stderr: "b\n", alone: "the outputs' pipes are root's there"},
		{name: "read at EOF", code: "read x; echo $?; cat; echo [$x]", stdout: "1\n[]\n"},
		{name: "stdin is no terminal", code: "[ -t 0 ] || echo no; [ -t 1 ] || echo no; tty", stdout: "no\nno\nnot a tty\n", exit: 1},
		{name: "arrays", code: "a=(x y z); declare -A m=([k]=v); echo ${a[1]} ${#a[@]} ${m[k]} ${!m[@]}", stdout: "y 3 v k\n"},
		{name: "expansion", code: "x=path/to/file.txt; echo ${x##*/} ${x%.*} ${x^^} ${x:5:2} $((2**10)) {a..c}", stdout: "file.txt path/to/file PATH/TO/FILE.TXT to 1024 a b c\n"},
		{name: "glob", code: "touch b a; echo *; shopt -s nullglob; echo x*", stdout: "a b main.sh\n\n"},
		{name: "options", code: "shopt | grep -c on$; echo $SHELLOPTS; echo $BASHOPTS | tr : '\\n' | grep -c .", stdout: "13\nbraceexpand:hashall:interactive-comments\n13\n"},
		{name: "source", code: "echo 'y=3; return 4' > lib.sh\n. ./lib.sh\necho $? $y", stdout: "4 3\n"},
		{name: "exports", code: "export A=1; B=2; sh -c 'echo $A$B'", stdout: "1\n"},
		{name: "other interpreters", code: "python3 -c 'print(1)'; node -p 2; perl -e 'print 3'", stdout: "1\n2\n3"},
		{name: "tools", code: "for t in git curl jq pip npm; do command -v $t >/dev/null || echo no $t; done; echo '{\"a\":[1]}' | jq -c .a", stdout: "[1]\n"},
		{name: "git", code: "git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m m && git log --format=%s", stdout: "m\n"},
		{name: "variables of its own", code: "echo $UID $EUID $((BASHPID == $$)); echo ${BASH_ENV-unset} ${ENV-unset}; echo $IFS | od -c | head -1", stdout: "1000 1000 1\nunset unset\n0000000  \\n\n"},
		{name: "SECONDS", code: "echo $((SECONDS < 2))", stdout: "1\n"},
		{name: "functions and aliases", code: "declare -F; alias; compgen -A function", exit: 1},
		{name: "time zone", code: "date -d @0 '+%F %T %Z'", stdout: "1970-01-01 00:00:00 UTC\n"},
		{name: "umask and ulimit", code: "umask; ulimit -c", stdout: "0022\n0\n", alone: "the test's own limits hold there"},
		{name: "broken pipe", code: "yes | head -n 1; echo ${PIPESTATUS[0]}", stdout: "y\n141\n"},
		{name: "nohup daemon", code: "nohup sleep 30 >/dev/null 2>&1 &\necho started", stdout: "started\n"},
		{name: "subshell variables", code: "x=1; (x=2); echo $x; echo $(echo in)", stdout: "1\nin\n"},
		{name: "select and case", code: "case abc in a*) echo a;; *) echo other;; esac; for ((i=0;i<3;i++)); do printf $i; done", stdout: "a\n012"},
		{name: "printf", code: "printf '%s-%05.2f-%q\\n' a 3.14159 'b c'", stdout: "a-03.14-b\\ c\n"},
		{name: "mapfile and read", code: "mapfile -t l < <(printf 'a\\nb\\n'); echo ${#l[@]}; IFS=: read -r a b <<< 1:2; echo $b", stdout: "2\n2\n"},
	})
}
