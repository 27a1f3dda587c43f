package tools

import (
	"os/exec"
	"testing"
)

// TestQuoted: bash reads what was quoted as the name itself.
func TestQuoted(t *testing.T) {
	for _, name := range []string{"caf\xe9", "it's \"\xff\" \\ $HOME `x`", "\x01\n\x7f\xc3", "\xe9" + "1", "-\xff*"} {
		out, err := exec.Command("bash", "-c", "printf %s "+quoted(name)).Output()
		if err != nil || string(out) != name {
			t.Errorf("%q is quoted as %s, which bash reads as %q (%v)", name, quoted(name), out, err)
		}
	}
	if got := quoted("caf\xe9"); got != `$'caf\351'` {
		t.Errorf("got %s, where the documentation has another", got)
	}
}
