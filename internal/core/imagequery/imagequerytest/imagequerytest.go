// Package imagequerytest is the suite that every imagequery.Images passes, and a Caller within a process.
package imagequerytest

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/imagequery"
	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Images runs the suite. The executor has the images "default", which Atoll built, and "base" with Python
// and without Node.js. Its table of aliases maps "node:22" to "base". It installs packages of Python and
// Node.js, and makes variants of the default image, but does not finish one during the suite.
func Images(t *testing.T, images imagequery.Images) {
	ctx := t.Context()
	invalid := func(err error, says string) {
		t.Helper()
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an Invalid fault with %q", err, says)
		}
	}
	for _, name := range []string{"base", "default", "default+browser"} {
		if err := images.CheckImage(ctx, name); err != nil {
			t.Errorf("image %q: %v", name, err)
		}
	}
	invalid(images.CheckImage(ctx, "none"), `image "none" is not on this server`)
	invalid(images.CheckImage(ctx, requirement.ImagePrefix+"x"), "use its base image, and packages")

	if err := images.CheckPackages(ctx, "base", &requirement.Set{Pip: []string{"six==1.17.0"}}); err != nil {
		t.Error(err)
	}
	invalid(images.CheckPackages(ctx, "base", &requirement.Set{NPM: []string{"left-pad"}}), "packages.npm: the image \"base\" has no Node.js")
	invalid(images.CheckPackages(ctx, "base", &requirement.Set{Apt: []string{"jq"}}), "packages.apt: this server has no registry")

	for asked, want := range map[string]string{"base": "base", "node:22": "base"} {
		if name, err := images.Resolve(ctx, asked); name != want || err != nil {
			t.Errorf("%q is %q, %v", asked, name, err)
		}
	}
	_, err := images.Resolve(ctx, "absent:1")
	invalid(err, `no image "absent:1"`)

	extras := []string{requirement.Browser}
	for name, says := range map[string]string{"default": `is making the image "default+browser"`, "base": "", requirement.Ref("base", &requirement.Set{Pip: []string{"six"}}): ""} {
		making, err := images.Prepare(ctx, name, extras)
		if err != nil || !strings.Contains(making, says) || (making == "") != (says == "") {
			t.Errorf("prepare %q: %q, %v", name, making, err)
		}
		why, err := images.Lacking(ctx, name, extras)
		if err != nil || !strings.Contains(why, says) || (why == "") != (says == "") {
			t.Errorf("%q lacks extras because %q, %v", name, why, err)
		}
	}
	if making, err := images.Prepare(ctx, "default", nil); making != "" || err != nil {
		t.Errorf("without extras: %q, %v", making, err)
	}
}
