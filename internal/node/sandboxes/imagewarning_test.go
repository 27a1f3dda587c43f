package sandboxes_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

func TestALaterVersionThanWasAskedForIsSaid(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	warns := func(what string, sb *sandbox.Sandbox) {
		t.Helper()
		if want := "atoll image import python:3.10"; !strings.Contains(sb.ImageWarning, want) || !strings.Contains(sb.ImageWarning, "Python 3.1") {
			t.Errorf("%s: the warning is %q, without %q", what, sb.ImageWarning, want)
		}
	}
	asked := &sandbox.Spec{Image: "python:3.10"}
	warns("a new one", m.ensure(p, "s", "old", asked))
	warns("the same", m.ensure(p, "s", "old", asked))
	m.restart()
	all, err := m.List(t.Context(), p, "s")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	warns("a listed one", all[0])
	m.ensure(p, "s", "plain", nil)
	warns("one made for another caller", m.ensure(p, "s", "plain", asked))
	for what, spec := range map[string]*sandbox.Spec{"none": nil, "any": {Image: "python:3"}, "assumed": {Image: "node:18", ImageAssumed: true}} {
		if sb := m.ensure(p, "s", what, spec); sb.ImageWarning != "" || spec != nil && sb.ImageAlias != spec.Image {
			t.Errorf("%s: %q as %q", what, sb.ImageWarning, sb.ImageAlias)
		}
	}
	_, _, err = m.Ensure(t.Context(), p, "s", "exact", &sandbox.Spec{Image: "python:3.10", ImageExact: true})
	refused(t, "a version that must be exact", err, fault.Invalid, "image_aliases")
	_, _, err = m.Ensure(t.Context(), p, "s", "ubuntu", &sandbox.Spec{Image: "ubuntu:20.04"})
	refused(t, "a system that is not here", err, fault.Invalid, "atoll image import ubuntu:20.04")
}
