package store_test

import (
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/core/installation"
)

func testInstallation(t *testing.T, open opener) {
	ctx := t.Context()
	s := open(t).Installation()
	first, err := s.ID(ctx)
	must(t, err)
	again, err := s.ID(ctx)
	must(t, err)
	if other, err := open(t).Installation().ID(ctx); first == "" || first != again || err != nil || other == first {
		t.Errorf("ids %q, %q; of another %q, %v", first, again, other, err)
	}
	one := installation.Member{Executor: "exe_1", Host: "one", Bus: "b", Blobs: "c", Volumes: "d"}
	two := installation.Member{Executor: "exe_2", Host: "two"}
	members := func() (all []installation.Member) {
		t.Helper()
		seen, err := s.Members(ctx, "exe_1")
		must(t, err)
		for _, m := range seen {
			if m.Age < 0 || m.Age > installation.DeadAfter {
				t.Errorf("age %v", m.Age)
			}
			all = append(all, m.Member)
		}
		return all
	}
	must(t, s.Beat(ctx, one))
	if got := members(); len(got) != 0 {
		t.Errorf("it has %v beside it", got)
	}
	must(t, s.Beat(ctx, two))
	two.Bus = "b"
	must(t, s.Beat(ctx, two))
	if got := members(); !slices.Equal(got, []installation.Member{two}) {
		t.Errorf("it has %v beside it", got)
	}
	must(t, s.Leave(ctx, "exe_2"))
	if got := members(); len(got) != 0 {
		t.Errorf("it has %v beside it", got)
	}
}
