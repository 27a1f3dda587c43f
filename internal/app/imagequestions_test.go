package app

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/imagequery"
	"github.com/atoll-run/atoll/internal/core/imagequery/imagequerytest"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/provision"
)

// machines is a bus with one executor, or with none if it is nil.
type machines remote.Handlers

func (e machines) Executors() remote.Caller { return imagequerytest.Caller(e) }

// TestRemoteImageQuestions starts the module as a gateway without images does.
func TestRemoteImageQuestions(t *testing.T) {
	images, err := image.Open(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.SQLite(t)
	const of, env = "ten_00000000000000aa", "env_00000000000000a0"
	for _, err := range []error{
		db.Tenants().PutPlan(t.Context(), tenant.Plan{Name: "p"}),
		db.Tenants().CreateTenant(t.Context(), tenant.Tenant{ID: of, Name: "t", Plan: "p", Tier: tenant.Standard, AuditDays: 30}),
		db.Tenants().CreateEnvironment(t.Context(), tenant.Environment{ID: env, Tenant: of, Name: "e", Image: "default", Limits: runtime.DefaultLimits()}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	start := func(e machines, s config.Config) *imageQuestionsModule {
		m := &imageQuestionsModule{process: &process{cfg: Config{Settings: &s}, log: slog.New(slog.DiscardHandler)}, records: &recordsModule{db: db}, executors: e}
		if err := m.Start(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return m
	}
	set := &requirement.Set{Pip: []string{"six"}}
	one := machines(imagequery.Handlers(&provision.Answers{Aliases: &image.Aliases{Store: images}}))
	for name, c := range map[string]struct {
		executors machines
		want      fault.Kind
	}{"one executor": {one, fault.Invalid}, "no executor": {nil, fault.Unavailable}} {
		m := start(c.executors, config.Config{PackageImages: 1, PackageImagesPerTenant: 1})
		if err := m.CheckImage(t.Context(), "none"); fault.KindOf(err) != c.want {
			t.Errorf("%s: an image: %v", name, err)
		}
		if err := m.installer.CheckPackages(t.Context(), "none", set); fault.KindOf(err) != c.want {
			t.Errorf("%s: packages: %v", name, err)
		}
		// These need no executor.
		ref := requirement.Ref("none", set)
		if err := m.installer.Admit(t.Context(), of, ref, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := m.installer.Build(t.Context(), ref); err != nil || b.State != requirement.Building {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
		if err := m.installer.Install(t.Context(), ref); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, e := range []string{env, "env_00000000000000ff"} { // the second was deleted
			if why, err := m.extras.Lacking(t.Context(), of, e, requirement.Extras); why != "" || err != nil {
				t.Errorf("%s: %s: %q, %v", name, e, why, err)
			}
		}
	}
	if m := start(one, config.Config{ImageVariants: variantsOff}); m.installer != nil || m.preparer != nil || m.extras != nil {
		t.Error("settings without packages and variants leave them on")
	}
}
