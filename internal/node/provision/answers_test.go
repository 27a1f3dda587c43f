package provision

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/imagequery"
	"github.com/atoll-run/atoll/internal/core/imagequery/imagequerytest"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image"
)

// TestAnswers runs the suite in the process of the executor and from another one.
func TestAnswers(t *testing.T) {
	answers := func(t *testing.T) *Answers {
		r, _ := openVariants(t)
		r.makeDefault(t)
		r.cfg.Mirrors[requirement.NPM] = true
		return &Answers{Aliases: &image.Aliases{Store: r.images, Default: "default", Names: map[string]string{"node:22": "base"}}, Provisioner: r.Provisioner, Variants: true}
	}
	t.Run("local", func(t *testing.T) { imagequerytest.Images(t, answers(t)) })
	t.Run("remote", func(t *testing.T) {
		imagequerytest.Images(t, imagequery.NewClient(imagequerytest.Caller(imagequery.Handlers(answers(t)))))
	})
}

// TestAnswersWithoutProvisioner asks a server that makes no images.
func TestAnswersWithoutProvisioner(t *testing.T) {
	r := open(t)
	a := &Answers{Aliases: &image.Aliases{Store: r.images, Default: "base"}}
	extras := []string{requirement.Browser}
	if err := a.CheckImage(t.Context(), browser); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a variant that does not exist: %v", err)
	}
	if err := a.CheckPackages(t.Context(), "base", &requirement.Set{Pip: []string{"six"}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("packages: %v", err)
	}
	if making, err := a.Prepare(t.Context(), "default", extras); making != "" || err != nil {
		t.Errorf("%q, %v", making, err)
	}
	if why, err := a.Lacking(t.Context(), "default", extras); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
}

// TestRecords checks that a gateway, which has the records alone, can have a failed build repeated.
func TestRecords(t *testing.T) {
	r := open(t)
	records := requirement.Records{Store: r.db.PackageBuilds()}
	ref := r.want(t, "e1", "six")
	r.fake.err = fault.New(fault.Invalid, "no such package")
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Failed {
		t.Fatalf("%+v", b)
	}
	r.fake.err = nil
	if err := records.Install(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if b := r.state(t, ref); b.State != requirement.Building {
		t.Errorf("after the request: %+v", b)
	}
	r.now = r.now.Add(time.Second)
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Ready {
		t.Errorf("after it was built again: %+v", b)
	}
}
