package app

import (
	"context"
	"log/slog"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/imagequery"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/provision"
)

// imageQuestionsModule answers questions of the gateway about images and packages. If executors run in
// other processes, it asks them, and answers from the records where those suffice.
type imageQuestionsModule struct {
	*process
	records *recordsModule

	// These belong to this machine; nil if executors run in other processes.
	packages *packagesModule
	images   *imagesModule

	// executors sends calls to executors in other processes; nil if this process is the executor.
	executors interface{ Executors() remote.Caller }

	imagequery.Images
	installer tenant.Packages // installs the packages of environments; nil if executors install none
	preparer  interface {     // requests images that skills need; nil if executors make none
		Prepare(ctx context.Context, image string, extras []string) (string, error)
	}
	extras sandboxtool.Extras // explains to agents what their sandboxes lack; nil if that is unknown
}

// Start implements module.Part.
func (m *imageQuestionsModule) Start(context.Context, *module.Undo) error {
	var builds packageBuilds
	if m.executors != nil {
		m.Images = imagequery.NewClient(m.executors.Executors())
		builds = &requirement.Records{Store: m.records.db.PackageBuilds(), PerTenant: m.cfg.Settings.PackageImagesPerTenant}
	} else {
		m.Images = m.images.answers(m.packages)
		builds = m.packages.provisioner
	}
	if m.provisions() {
		m.installer, m.preparer, m.extras = installer{m.Images, builds}, m.Images, lacking{m.Images, m.records, m.log}
	}
	return nil
}

// packageBuilds admits, shows and requests images with the packages of environments.
type packageBuilds interface {
	Admit(ctx context.Context, tenant, ref, replaced string) error
	Build(ctx context.Context, ref string) (requirement.Build, error)
	Install(ctx context.Context, ref string) error
}

// provisions reports whether executors install packages or make variants of the default image.
func (p *process) provisions() bool {
	return p.cfg.Settings.PackageImages > 0 || p.cfg.Settings.ImageVariants != variantsOff
}

// answers answers questions about the images of this machine.
func (m *imagesModule) answers(packages *packagesModule) *provision.Answers {
	return &provision.Answers{Aliases: m.Aliases, Provisioner: packages.provisioner, Variants: m.cfg.Settings.ImageVariants != variantsOff}
}

// installer implements tenant.Packages.
type installer struct {
	imagequery.Images
	packageBuilds
}

// lacking implements sandboxtool.Extras.
type lacking struct {
	images  imagequery.Images
	records *recordsModule
	log     *slog.Logger
}

// Lacking implements sandboxtool.Extras. If no executor answers, the agent gets no explanation, because
// an error would end its run.
func (l lacking) Lacking(ctx context.Context, t, environment string, extras []string) (string, error) {
	e, err := l.records.db.Tenants().Environment(ctx, t, environment)
	if fault.KindOf(err) == fault.NotFound { // it was deleted while the call ran
		return "", nil
	}
	if err != nil {
		return "", err
	}
	why, err := l.images.Lacking(ctx, e.RunImage(), extras)
	if fault.KindOf(err) == fault.Unavailable && ctx.Err() == nil {
		l.log.WarnContext(ctx, "cannot explain to an agent why its sandbox lacks programs; check that an executor runs", "environment", environment, "error", err)
		return "", nil
	}
	return why, err
}
