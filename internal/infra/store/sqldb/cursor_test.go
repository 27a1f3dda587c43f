package sqldb

import (
	"fmt"
	"strings"
	"testing"
)

func FuzzCursor(f *testing.F) {
	box := testBox(f)
	for _, p := range []Place{{}, {1, "trc_1"}, {-1, "\x00\xff"}} {
		f.Add(EncodeCursor(box, "executions/a", p))
		f.Add(EncodeCursor(box, "executions/b", p))
	}
	f.Add("")
	f.Add("====")
	f.Add(strings.Repeat("A", 600))
	f.Fuzz(func(t *testing.T, token string) {
		p, err := DecodeCursor(box, "executions/a", token)
		if err != nil {
			if p != (Place{}) {
				t.Errorf("%v with an error", p)
			}
			return
		}
		if again := EncodeCursor(box, "executions/a", p); again != token {
			t.Errorf("%q is taken for %q", token, again)
		}
		if _, err := DecodeCursor(box, "executions/b", token); err == nil {
			t.Errorf("%q is good for two lists", fmt.Sprint(token))
		}
	})
}
