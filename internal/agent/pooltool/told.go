package pooltool

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/control/tools"
)

// maxTold bounds each text of an output that the model is given, in bytes.
const maxTold = 64 << 10

// told is what the model reads of an output: of a command its code and the beginning and end of
// what it wrote, of any other tool the JSON that clients get.
func told(out any) (string, error) {
	if o, ok := out.(*tools.ShellOutput); ok {
		var b strings.Builder
		fmt.Fprintf(&b, "Exit code %d\n", o.ExitCode)
		if o.TimedOut {
			b.WriteString("The command was ended because timeout_ms was over.\n")
		}
		if o.Blocked != "" {
			fmt.Fprintf(&b, "The permissions of this environment stopped the command: %s\n", o.Blocked)
		}
		if o.Hint != "" {
			fmt.Fprintf(&b, "Hint: %s\n", o.Hint)
		}
		sandboxcall.Section(&b, "stdout", o.Stdout, o.StdoutTruncated)
		sandboxcall.Section(&b, "stderr", o.Stderr, o.StderrTruncated)
		return b.String(), nil
	}
	short, _ := tools.Shorten(out, maxTold)
	text, err := json.Marshal(short, jsontext.AllowInvalidUTF8(true))
	return string(text), err
}
