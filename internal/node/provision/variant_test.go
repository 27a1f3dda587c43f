package provision

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/test/atolltest"
)

const (
	browser = "default+browser"
	office  = "default+browser,office"
)

// archived writes the rig's image "base" as an archive.
func (r *rig) archived(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "variant.tar.zst")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(r.images.Export(t.Context(), "base", f, nil), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// importBase imports the rig's image "base" under another name.
func (r *rig) importBase(t *testing.T, name string) {
	t.Helper()
	if _, err := r.images.ImportArchive(t.Context(), image.ImportOptions{Name: name, Source: r.archived(t)}); err != nil {
		t.Fatal(err)
	}
}

// makeDefault gives the rig a default image as Atoll builds it.
func (r *rig) makeDefault(t *testing.T, with ...string) {
	t.Helper()
	r.importBase(t, image.Default)
	record := filepath.Join(r.images.Dir(), image.Default, "image.json")
	data, err := os.ReadFile(record)
	if err == nil {
		fields := `"recipe": "abc",`
		if len(with) > 0 {
			fields += `"with": ["` + strings.Join(with, `","`) + `"],`
		}
		err = os.WriteFile(record, []byte(strings.Replace(string(data), `"digest"`, fields+`"digest"`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// builder builds variants as a test says: it imports an archive, or fails.
type builder struct {
	r       *rig
	archive string
	err     error
	made    []string
	within  time.Duration
	running chan struct{} // if not nil, a build says that it runs, and waits for its end
}

func (b *builder) BuildDefault(ctx context.Context, o image.BuildOptions) (*image.Image, error) {
	b.made = append(b.made, requirement.Variant(o.With))
	if at, ok := ctx.Deadline(); ok {
		b.within = time.Until(at)
	}
	o.Progress(image.Report{Step: "downloading packages"})
	if b.running != nil {
		b.running <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if b.err != nil {
		return nil, b.err
	}
	return b.r.images.ImportArchive(ctx, image.ImportOptions{Name: o.Name, Source: b.archive})
}

// openVariants returns a rig whose server makes variants.
func openVariants(t *testing.T) (*rig, *builder) {
	t.Helper()
	r := open(t)
	b := &builder{r: r, archive: r.archived(t)}
	r.cfg.Variants = &Variants{Build: b, Time: time.Hour}
	return r, b
}

// environment makes an environment of an image.
func (r *rig) environment(t *testing.T, id, of string, pip ...string) tenant.Environment {
	t.Helper()
	e := tenant.Environment{ID: id, Tenant: "ten_00000000000000aa", Name: id, Image: of, Limits: runtime.DefaultLimits(), Packages: requirement.Set{Pip: pip}}
	if err := r.db.Tenants().CreateEnvironment(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// soon returns what Resolve answers to a caller that does not wait.
func (r *rig) soon(t *testing.T, ref string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return r.Resolve(ctx, ref)
}

func (r *rig) builds(result string) float64 {
	return testutil.ToFloat64(r.ended.WithLabelValues(variantBuild, result))
}

// TestVariantOfEnvironment builds the variant that an environment has as its image, and again
// after it was deleted.
func TestVariantOfEnvironment(t *testing.T) {
	r, b := openVariants(t)
	r.makeDefault(t)
	r.environment(t, "e1", browser)
	r.environment(t, "e2", "default")
	if got := r.state(t, browser); got.State != requirement.Building {
		t.Errorf("before it has begun: %+v", got)
	}
	r.step(t)
	r.step(t)
	if got := r.state(t, browser); got.State != requirement.Ready || got.Image != browser || strings.Join(got.Log, "|") != "downloading packages" {
		t.Errorf("%+v", got)
	}
	if name, err := r.Resolve(t.Context(), browser); name != browser || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	if err := r.images.Remove(browser); err != nil {
		t.Fatal(err)
	}
	r.step(t)
	if !slices.Equal(b.made, []string{browser, browser}) || r.builds(resultReady) != 2 {
		t.Errorf("built %q, counted %v", b.made, r.builds(resultReady))
	}
	if b.within > time.Hour || b.within < 59*time.Minute {
		t.Errorf("a build may take %s", b.within)
	}
	if err := r.Admit(t.Context(), "ten_00000000000000aa", "packages:x", "default"); err != nil {
		t.Errorf("a variant counts as packages: %v", err)
	}
}

// TestVariantOfRequest builds a variant because a call needs it. The call waits.
func TestVariantOfRequest(t *testing.T) {
	r, b := openVariants(t)
	got := make(chan error, 1)
	go func() {
		name, err := r.Resolve(t.Context(), browser)
		if err == nil && name != browser {
			err = errors.New(name)
		}
		got <- err
	}()
	<-r.wake // it has asked
	atolltest.Until(t, time.Minute, "the call waits", func() bool { return r.waits.Held("") == 1 })
	r.step(t)
	if err := <-got; err != nil {
		t.Error(err)
	}
	// Nothing wants it any more: it is not built again after it was deleted.
	if err := r.images.Remove(browser); err != nil {
		t.Fatal(err)
	}
	r.step(t)
	if len(b.made) != 1 {
		t.Errorf("built %q", b.made)
	}
	if _, err := r.soon(t, browser); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "nothing was run. Retry") {
		t.Errorf("a call that waited for long: %v", err)
	}
	r.step(t)
	if len(b.made) != 2 {
		t.Errorf("built %q", b.made)
	}
}

// TestVariantFails has builds fail: calls get the reason and the command, attempts are further and
// further apart, and the next process tries at once.
func TestVariantFails(t *testing.T) {
	r, b := openVariants(t)
	r.environment(t, "e1", browser)
	b.err = fault.Wrap(fault.Unavailable, errors.New("of /secret/path"), "apt-get install mmdebstrap first")
	r.step(t)
	r.step(t)
	got := r.state(t, browser)
	if got.State != requirement.Failed || strings.Join(got.Log, "|") != "downloading packages|apt-get install mmdebstrap first" || len(b.made) != 1 {
		t.Errorf("%+v after %d builds", got, len(b.made))
	}
	_, err := r.Resolve(t.Context(), browser)
	if told, ok := errors.AsType[*fault.Error](err); !ok || told.Kind != fault.Conflict ||
		told.Msg != `the image "default+browser" could not be made: apt-get install mmdebstrap first. Atoll tries again in 1 min; to try now, ask the operator to run 'atoll image build --with browser' on the server` {
		t.Errorf("a call: %v", err)
	}
	for i, pause := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
		r.now = r.now.Add(pause - time.Second)
		if r.step(t); len(b.made) != i+1 {
			t.Errorf("%d builds a second before the pause of %s ends", len(b.made), pause)
		}
		r.now = r.now.Add(time.Second)
		if r.step(t); len(b.made) != i+2 {
			t.Errorf("%d builds after the pause of %s", len(b.made), pause)
		}
	}
	if r.builds(resultFailed) != 4 {
		t.Errorf("counted %v", r.builds(resultFailed))
	}
	// An environment that is set again does not shorten the pause.
	if err := r.Install(t.Context(), browser); err != nil {
		t.Fatal(err)
	}
	if r.step(t); len(b.made) != 4 {
		t.Errorf("%d builds", len(b.made))
	}
	b.err = nil
	next := New(r.cfg)
	if err := next.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name, err := next.Resolve(t.Context(), browser); name != browser || err != nil || len(b.made) != 5 {
		t.Errorf("%q, %v after %d builds", name, err, len(b.made))
	}
}

// TestVariantFailsForRequest: what only a call needs is tried again after a restart, and if it is
// asked for again, but not for ever.
func TestVariantFailsForRequest(t *testing.T) {
	r, b := openVariants(t)
	b.err = errors.New("a disk of this server's, /secret/path")
	_, _ = r.soon(t, browser)
	r.step(t)
	r.now = r.now.Add(2 * lastRetry)
	r.step(t)
	got := r.state(t, browser)
	if len(b.made) != 1 || got.State != requirement.Failed || strings.Contains(strings.Join(got.Log, ""), "secret") {
		t.Errorf("%d builds, %+v", len(b.made), got)
	}
	if _, err := r.soon(t, browser); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "tries again soon") {
		t.Error(err)
	}
	if r.step(t); len(b.made) != 2 {
		t.Errorf("%d builds", len(b.made))
	}
	next := New(r.cfg)
	if err := next.Step(t.Context()); err != nil || len(b.made) != 3 {
		t.Errorf("%v after %d builds", err, len(b.made))
	}
}

// TestVariantAgain has a process end within a build: the next one begins anew, although nobody asks
// again.
func TestVariantAgain(t *testing.T) {
	r, b := openVariants(t)
	_, _ = r.soon(t, browser)
	b.running = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Step(ctx) }()
	<-b.running
	if got := r.state(t, browser); got.State != requirement.Building || strings.Join(got.Log, "|") != "downloading packages" {
		t.Errorf("while it is built: %+v", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(r.images.Dir(), ".tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	b.running = nil
	next := New(r.cfg)
	if err := next.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name, err := next.Resolve(t.Context(), browser); name != browser || err != nil || len(b.made) != 2 {
		t.Errorf("%q, %v after %d builds", name, err, len(b.made))
	}
}

// TestVariantBounds: a build ends with its time and with the room on the disk, and does not begin
// without room.
func TestVariantBounds(t *testing.T) {
	for says, bound := range map[string]func(*rig, *builder){
		"it took longer than 1ms (image_variant_time)": func(r *rig, b *builder) {
			b.running = make(chan struct{}, 1)
			r.cfg.Variants.Time = time.Millisecond
		},
		"the disk is full": func(r *rig, b *builder) {
			b.running = make(chan struct{}, 1)
			r.cfg.Room = func(bytes int64) error {
				if bytes > 0 {
					return nil
				}
				return fault.New(fault.Unavailable, "the disk is full")
			}
		},
		"there is little room": func(r *rig, _ *builder) {
			r.cfg.Room = func(bytes int64) error {
				if bytes < 2<<30 {
					return nil
				}
				return fault.New(fault.Unavailable, "there is little room")
			}
		},
		"image_variant_sources has no archive of it, and image_variants lets the server build none": func(r *rig, _ *builder) {
			r.cfg.Variants.Build = nil
		},
	} {
		r, b := openVariants(t)
		r.environment(t, "e1", browser)
		bound(r, b)
		r.step(t)
		if got := r.state(t, browser); got.State != requirement.Failed || len(got.Log) == 0 || got.Log[len(got.Log)-1] != says {
			t.Errorf("want %q, got %+v", says, got)
		}
	}
}

// TestVariantImported imports a prebuilt variant in place of building it.
func TestVariantImported(t *testing.T) {
	r, b := openVariants(t)
	source := r.archived(t) + "#sha256=" + strings.Repeat("0", 64)
	r.cfg.Variants.Source = func(name string) string {
		if name == browser {
			return source
		}
		return ""
	}
	r.environment(t, "e1", browser)
	r.environment(t, "e2", office)
	r.step(t)
	const says = "its prebuilt archive could not be imported; the server's log says why"
	if got := r.state(t, browser); got.State != requirement.Failed || got.Log[len(got.Log)-1] != says {
		t.Errorf("another archive: %+v", got)
	}
	source, _, _ = strings.Cut(source, "#")
	r.now = r.now.Add(firstRetry)
	r.step(t)
	for _, name := range []string{browser, office} {
		if got := r.state(t, name); got.State != requirement.Ready {
			t.Errorf("%+v", got)
		}
	}
	if !slices.Equal(b.made, []string{office}) {
		t.Errorf("built %q", b.made)
	}
}

// TestVariantSourceIsSecret has imports fail: tenants see neither where the archive is nor the token of
// its URL, and the log says what is wrong.
func TestVariantSourceIsSecret(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	for source, logged := range map[string]string{
		"/secret/browser.tar.zst": "there is no image archive",
		strings.Replace(site.URL, "//", "//secret:secret@", 1) + "/x?token=secret#sha256=" + strings.Repeat("0", 64): "404 Not Found",
	} {
		r, _ := openVariants(t)
		var log strings.Builder
		r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		r.cfg.Variants.Source = func(string) string { return source }
		r.environment(t, "e1", browser)
		r.step(t)
		got := r.state(t, browser)
		_, err := r.Resolve(t.Context(), browser)
		told, ok := errors.AsType[*fault.Error](err)
		if !ok || got.State != requirement.Failed {
			t.Fatalf("%+v, %v", got, err)
		}
		if shown := strings.Join(got.Log, "\n") + told.Msg; strings.Contains(shown, "secret") || strings.Contains(shown, "127.0.0.1") {
			t.Errorf("tenants see %q", shown)
		}
		if !strings.Contains(log.String(), logged) {
			t.Errorf("the log says %q, want %q", log.String(), logged)
		}
	}
}

// TestVariantByCommand has a command build a variant that could not be made here.
func TestVariantByCommand(t *testing.T) {
	r, b := openVariants(t)
	r.environment(t, "e1", browser)
	b.err = errors.New("no")
	r.step(t)
	r.importBase(t, browser)
	if name, err := r.Resolve(t.Context(), browser); name != browser || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	r.step(t)
	if got := r.state(t, browser); got.State != requirement.Ready {
		t.Errorf("%+v", got)
	}
}

// TestVariantOff: with image_variants=off nothing is made, and calls say which command helps.
func TestVariantOff(t *testing.T) {
	r, b := openVariants(t)
	r.cfg.Variants = nil
	r.makeDefault(t)
	r.environment(t, "e1", browser)
	r.step(t)
	_, err := r.Resolve(t.Context(), browser)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "'atoll image build --with browser'") || len(b.made) > 0 {
		t.Errorf("%v, built %q", err, b.made)
	}
	if name, err := r.Extend(t.Context(), "default", []string{requirement.Browser}, []string{requirement.Browser}); name != "default" || err != nil {
		t.Errorf("a skill: %q, %v", name, err)
	}
	if why := r.Lacking("default", []string{requirement.Browser}); why != "" {
		t.Errorf("an agent is told %q", why)
	}
	r.importBase(t, browser)
	if name, err := r.Resolve(t.Context(), browser); name != browser || err != nil {
		t.Errorf("one that a command has built: %q, %v", name, err)
	}
	if name, err := r.Extend(t.Context(), "default", []string{requirement.Browser}, []string{requirement.Browser}); name != browser || err != nil {
		t.Errorf("a skill: %q, %v", name, err)
	}
}

// TestPackagesOverVariant builds the variant first, and then packages above it.
func TestPackagesOverVariant(t *testing.T) {
	r, b := openVariants(t)
	r.makeDefault(t)
	if err := r.Check(browser, &requirement.Set{Pip: []string{"six"}}); err != nil {
		t.Errorf("over a variant that is not there yet: %v", err)
	}
	e := r.environment(t, "e1", browser, "six")
	b.err = fault.New(fault.Unavailable, "no mirror")
	r.step(t)
	if got := r.state(t, e.RunImage()); got.State != requirement.Failed || got.Log[len(got.Log)-1] != "no mirror" {
		t.Errorf("%+v", got)
	}
	if _, err := r.Resolve(t.Context(), e.RunImage()); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "no mirror") {
		t.Error(err)
	}
	b.err, r.now = nil, r.now.Add(firstRetry)
	r.step(t)
	if name, err := r.Resolve(t.Context(), e.RunImage()); err != nil || !image.Extended(name) {
		t.Errorf("%q, %v", name, err)
	}
}

// TestWithoutPackages: a server that installs no packages makes variants all the same.
func TestWithoutPackages(t *testing.T) {
	r, _ := openVariants(t)
	r.cfg.Most = 0
	r.makeDefault(t)
	e := r.environment(t, "e1", browser, "six")
	r.step(t)
	if _, err := r.Resolve(t.Context(), e.RunImage()); fault.KindOf(err) != fault.Conflict || r.fake.count() > 0 {
		t.Errorf("packages: %v after %d runs", err, r.fake.count())
	}
	if err := r.Check(browser, &requirement.Set{Pip: []string{"six"}}); err == nil || !strings.Contains(err.Error(), "package_images") {
		t.Errorf("an environment: %v", err)
	}
	if name, err := r.Resolve(t.Context(), browser); name != browser || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

// TestExtend chooses images for agents whose skills need extras.
func TestExtend(t *testing.T) {
	both := []string{requirement.Browser, requirement.Office}
	t.Run("built for a call", func(t *testing.T) {
		r, b := openVariants(t)
		r.makeDefault(t)
		extend := func(of string, needed bool, extras ...string) string {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			var need []string
			if needed {
				need = extras
			}
			name, err := r.Extend(ctx, of, extras, need)
			switch {
			case fault.KindOf(err) == fault.Unavailable:
				return "wait"
			case err != nil:
				return err.Error()
			}
			return name
		}
		if got := extend("default", false, requirement.Browser); got != "default" {
			t.Errorf("a call that can do without: %s", got)
		}
		if why := r.Lacking("default", []string{requirement.Browser}); !strings.Contains(why, "is making the image \"default+browser\"") {
			t.Errorf("an agent in that sandbox is told %q", why)
		}
		prepared := func() string {
			t.Helper()
			making, err := r.Prepare(t.Context(), "default", []string{requirement.Browser})
			if err != nil {
				t.Fatal(err)
			}
			return making
		}
		if making := prepared(); !strings.Contains(making, "is making the image \"default+browser\"") {
			t.Errorf("a turn begins with %q", making)
		}
		if got := extend("default", true, requirement.Browser); got != "wait" {
			t.Errorf("a call that needs it: %s", got)
		}
		b.err = fault.New(fault.Unavailable, "no mirror")
		r.step(t)
		if got := extend("default", true, requirement.Browser); got != "default" {
			t.Errorf("one that cannot be made: %s", got)
		}
		if why := r.Lacking("default", []string{requirement.Browser}); !strings.Contains(why, "no mirror") || !strings.Contains(why, "'atoll image build --with browser'") {
			t.Errorf("an agent in that sandbox is told %q", why)
		}
		if making := prepared(); making != "" {
			t.Errorf("a turn begins with %q although it cannot be made", making)
		}
		b.err, r.now = nil, r.now.Add(firstRetry)
		r.step(t)
		if making := prepared(); making != "" {
			t.Errorf("a turn begins with %q although it is there", making)
		}
		for _, need := range []bool{true, false} {
			if got := extend("default", need, requirement.Browser); got != browser {
				t.Errorf("one that is there: %s", got)
			}
		}
		if why := r.Lacking("default", []string{requirement.Browser}); !strings.Contains(why, "try again in a new session") {
			t.Errorf("an agent in an older sandbox is told %q", why)
		}
		if !slices.Equal(b.made, []string{browser, browser}) {
			t.Errorf("built %q", b.made)
		}
		if got := extend(browser, true, requirement.Office); got != "wait" {
			t.Errorf("another extra above a variant: %s", got)
		}
		// An agent with both skills needs one of them now.
		if name, err := r.Extend(t.Context(), "default", both, []string{requirement.Browser}); name != browser || err != nil {
			t.Errorf("one of two extras: %q, %v", name, err)
		}
		if got := extend("default", false, both...); got != browser {
			t.Errorf("a call that can do without: %s", got)
		}
		if why := r.Lacking("default", []string{requirement.Office}); !strings.Contains(why, "is making the image \"default+browser,office\"") {
			t.Errorf("an agent in that sandbox is told %q", why)
		}
		r.step(t)
		if got := extend(browser, true, requirement.Office); got != office {
			t.Errorf("another extra above a variant: %s", got)
		}
		if err := r.images.Remove(browser); err != nil {
			t.Fatal(err)
		}
		if got := extend("default", true, requirement.Browser); got != office {
			t.Errorf("a variant with more extras: %s", got)
		}
	})
	t.Run("default image with extras", func(t *testing.T) {
		r, _ := openVariants(t)
		r.makeDefault(t, both...)
		if name, err := r.Extend(t.Context(), "default", both, both); name != "default" || err != nil {
			t.Errorf("%q, %v", name, err)
		}
	})
	t.Run("images of others", func(t *testing.T) {
		r, b := openVariants(t)
		r.importBase(t, image.Default) // which Atoll did not build
		for _, name := range []string{"base", "default", "host"} {
			if got, err := r.Extend(t.Context(), name, both, both); got != name || err != nil {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if why := r.Lacking(name, both); why != "" {
				t.Errorf("%s: an agent is told %q", name, why)
			}
		}
		ref := r.want(t, "e1", "six")
		r.step(t)
		if got, err := r.Extend(t.Context(), ref, both, both); !image.Extended(got) || err != nil {
			t.Errorf("with packages: %q, %v", got, err)
		}
		if r.step(t); len(b.made) > 0 {
			t.Errorf("built %q", b.made)
		}
	})
}
