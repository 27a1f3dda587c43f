package id_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/id"
)

func TestIs(t *testing.T) {
	a, b := id.New("run"), id.New("run")
	if a == b || !id.Is("run", a) || len(a) != len("run_")+32 {
		t.Errorf("%s, %s", a, b)
	}
	digits := strings.Repeat("0a", 16)
	for _, s := range []string{"", "run_", "run_" + digits[1:], "run_" + digits + "0", "run_" + strings.ToUpper(digits), "run_" + digits[:31] + "\n", "run" + digits, "run_" + digits[:15] + "g" + digits[16:], "sess_" + digits, " run_" + digits} {
		if id.Is("run", s) {
			t.Errorf("%q", s)
		}
	}
}
