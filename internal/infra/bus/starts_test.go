package bus

import (
	"testing"
	"time"
)

func TestTheFirstDecisionAboutAStartCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 30*time.Second)
		s, other := b.Starts(), Starts{&Bus{cfg: Config{Name: "other"}, names: b.names, js: b.js, starts: b.starts}}
		for range 2 { // also when an executor repeats it after a restart
			if may, err := s.Begin(ctx, "trc_begun"); err != nil || !may {
				t.Errorf("begin: %v, %v", may, err)
			}
		}
		if may, err := other.Begin(ctx, "trc_begun"); err != nil || may {
			t.Errorf("begin what another executor began: %v, %v", may, err)
		}
		if voided, err := other.Void(ctx, "trc_begun"); err != nil || voided {
			t.Errorf("void what an executor began: %v, %v", voided, err)
		}
		for range 2 {
			if voided, err := other.Void(ctx, "trc_lost"); err != nil || !voided {
				t.Errorf("void: %v, %v", voided, err)
			}
		}
		if may, err := s.Begin(ctx, "trc_lost"); err != nil || may {
			t.Errorf("begin what a gateway declared lost: %v, %v", may, err)
		}
	})
}
