package initclient_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// inputs are programs that show their arguments, a variable, and what they read.
var inputs = map[string]string{
	guesttest.Python: `
import hashlib, os, sys
print(repr(sys.argv), sys.orig_argv[1:], os.environ.get("MORE"), ascii(sys.stdin.readline()), sys.stdin.fileno())
rest = sys.stdin.buffer.read() + open("/dev/stdin", "rb").read()
print(len(rest), hashlib.sha256(rest).hexdigest(), open("sub/in.bin", "rb").read(), os.listdir("out"))
`,
	guesttest.Node: `
const fs = require("fs");
const first = Buffer.alloc(6);
fs.readSync(0, first);
const { MORE } = process.env;
console.log(JSON.stringify(process.argv.slice(1)), MORE, first.toString());
const hash = require("crypto").createHash("sha256");
process.stdin.on("data", (d) => hash.update(d)).on("end", () =>
  console.log(hash.digest("hex"), fs.readFileSync("/dev/stdin").length, fs.readFileSync("sub/in.bin"), fs.readdirSync("out")));
`,
	guesttest.Bash: `
printf '<%s>' "$0" "$#" "$@" "$MORE"
IFS= read -r line
echo "$line"
sha256sum; wc -c </dev/stdin; od -An -tx1 sub/in.bin; ls out; set -o | grep -c on
`,
}

// TestInput runs programs with arguments, stdin and files in an interpreter that
// waited and in one that did not.
func TestInput(t *testing.T) {
	args := []string{"a b", "", "line 1\nline 2", "it's \"$HOME\" \\ `x`", "-c", "--", "ü€😀"}
	stdin := append([]byte("first\n"), bytes.Repeat([]byte{0, 255, 10, 13, 128, '\''}, 200_000)...)
	for language, code := range inputs {
		for name, env := range map[string][]string{"same variables": nil, "more variables": {"MORE=is 'more'"}} {
			t.Run(language+", "+name, func(t *testing.T) {
				t.Parallel()
				spec := guesttest.Program(t, language, code)
				spec.Argv = append(slices.Clone(spec.Argv), args...)
				spec.Env = append(slices.Clone(spec.Env), env...)
				spec.Stdin = stdin
				spec.Files = append(spec.Files,
					initclient.File{Path: runtime.Home + "/sub/in.bin", Mode: 0o644, Data: []byte{0, 1, 255, 10}}, initclient.File{Path: runtime.Home + "/out/"})
				cold := run(t, guesttest.Start(t).Dial(t), spec)
				if cold.Warm || cold.ExitCode != 0 || cold.stderr != "" {
					t.Fatalf("cold: %+v", cold)
				}
				c := guesttest.Start(t).Dial(t)
				warm(t, c, guesttest.Warm(t, language))
				got := run(t, c, spec)
				if !got.Warm {
					t.Fatal("the run was not warm")
				}
				compare(t, "stdout", got.stdout, cold.stdout)
				compare(t, "stderr", got.stderr, cold.stderr)
				t.Logf("%s", got.stdout)
			})
		}
	}
}
