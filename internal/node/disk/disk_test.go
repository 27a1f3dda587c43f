package disk

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func TestGuard(t *testing.T) {
	u, err := New(Config{Dir: t.TempDir()}).Usage()
	if err != nil || u.Free <= 0 || u.Size < u.Free {
		t.Fatalf("%+v, %v", u, err)
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string // of the message; "" for room
	}{
		"no bounds":      {Config{}, ""},
		"enough bytes":   {Config{Bytes: 1}, ""},
		"too few bytes":  {Config{Bytes: u.Size * 2}, "low on disk space"},
		"no such folder": {Config{Dir: "/no such folder"}, "cannot tell"},
	} {
		if c.cfg.Dir == "" {
			c.cfg.Dir = t.TempDir()
		}
		g := New(c.cfg)
		for range 2 { // seen, and remembered
			err := g.Admit()
			if c.want == "" && err != nil || c.want != "" && (fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if round(10<<30+5) != "10 GiB" || round(11<<20+5) != "11 MiB" || round(0) != "0 B" {
		t.Errorf("rounded to %s, %s, %s", round(10<<30+5), round(11<<20+5), round(0))
	}
}
