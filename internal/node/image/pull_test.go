package image_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
)

// shop is a registry with an image, which counts who asks for its manifest.
type shop struct {
	host   string
	asked  atomic.Int64
	leads  string                    // where it redirects to for team/led
	before func(ctx context.Context) // an answer is given; ctx ends when no caller waits for it
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{before: func(context.Context) {}}
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			s.asked.Add(1)
			s.before(r.Context())
		}
		if strings.HasPrefix(r.URL.Path, "/v2/team/led/") {
			http.Redirect(w, r, s.leads+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s.host = strings.TrimPrefix(srv.URL, "http://")
	for _, path := range []string{"/team/app:1", "/team/app:2", "/other/app:1"} {
		tag, err := name.ParseReference(s.host + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(tag, small(t)); err != nil {
			t.Fatal(err)
		}
	}
	s.asked.Store(0)
	return s
}

func TestAMissingImageIsPulledOnce(t *testing.T) {
	shop, store := openShop(t), open(t)
	a := &image.Aliases{Store: store, Default: "default", Pull: &image.Pull{Import: store.Import, Allow: []string{shop.host + "/team/*"}, Size: 1 << 20, Time: time.Minute, Room: func() error { return nil }}}
	ctx := t.Context()
	if _, err := a.Resolve(shop.host + "/team/app:1"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("resolved without having been pulled: %v", err)
	}
	here, gone := make(chan struct{}, 1), make(chan struct{})
	var once sync.Once
	shop.before = func(context.Context) { once.Do(func() { here <- struct{}{}; <-gone }) }
	var names [8]string
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			var err error
			if names[i], err = a.Provide(ctx, shop.host+"/team/app:1"); err != nil {
				t.Error(err)
			}
		})
	}
	<-here
	leaving, leave := context.WithCancel(ctx)
	leave()
	if _, err := a.Provide(leaving, shop.host+"/team/app:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("one who goes away gets %v", err)
	}
	close(gone)
	all.Wait()
	for _, name := range names {
		if name != names[0] || name == "" {
			t.Errorf("names are %q", names)
			break
		}
	}
	if n := shop.asked.Load(); n != 1 {
		t.Errorf("the registry was asked %d times", n)
	}
	if got, err := a.Resolve(shop.host + "/team/app:1"); err != nil || got != names[0] {
		t.Errorf("resolved to %q, %v", got, err)
	}
	if img, err := store.Get(names[0]); err != nil || img.Source != "docker://"+shop.host+"/team/app:1" {
		t.Errorf("%+v, %v", img, err)
	}
	if second, err := a.Provide(ctx, shop.host+"/team/app:2"); err != nil || second == names[0] {
		t.Errorf("another tag is %q, %v", second, err)
	}
	if left := leftovers(t, store); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// python314 is the Probe of an image of Python 3.14.
func python314(_ context.Context, _ runtime.Rootfs, _ []string) ([]byte, error) {
	return []byte("3.14.8\n/usr/lib/python3/dist-packages\n"), nil
}

func TestAVersionIsPulledBeforeALaterOneStandsIn(t *testing.T) {
	shop, store := openShop(t), open(t)
	// The registry of Docker is not reached by tests: its image comes from another one.
	elsewhere := func(ctx context.Context, o image.ImportOptions) (*image.Image, error) {
		o.Source = "docker://" + shop.host + "/team/app:1"
		return store.Import(ctx, o)
	}
	if _, err := store.Import(t.Context(), image.ImportOptions{Name: "default", Source: shop.host + "/team/app:2", Probe: python314}); err != nil {
		t.Fatal(err)
	}
	a := &image.Aliases{Store: store, Default: "default", Pull: &image.Pull{Import: elsewhere, Allow: []string{"docker.io/library/node"}, Size: 1 << 20, Time: time.Minute, Room: func() error { return nil }}}
	if got, err := a.Provide(t.Context(), "python:3.10"); err != nil || got != "default" || a.Warning("python:3.10", got) == "" {
		t.Errorf("one that may not be pulled is %q, %v", got, err)
	}
	a.Pull.Allow = []string{"docker.io/library/*"}
	got, err := a.Provide(t.Context(), "python:3.10")
	if err != nil || got == "default" || !strings.HasPrefix(got, "python-3.10.") {
		t.Errorf("one that may be pulled is %q, %v", got, err)
	}
	if again, err := a.Resolve("python:3.10"); err != nil || again != got {
		t.Errorf("and then %q, %v", again, err)
	}
	if got, err := a.Provide(t.Context(), "python:3.14"); err != nil || got != "default" {
		t.Errorf("the version of the default image is %q, %v", got, err)
	}
}

func TestWhatCannotBePulled(t *testing.T) {
	shop, store := openShop(t), open(t)
	pull := &image.Pull{Import: store.Import, Allow: []string{shop.host + "/team/*", "docker.io/library/python"}, Size: 1 << 20, Time: time.Minute, Room: func() error { return nil }}
	a := &image.Aliases{Store: store, Default: "default", Pull: pull, Names: map[string]string{"python:*": "mine"}}
	refused := func(asked string, kind fault.Kind, says string) {
		t.Helper()
		if _, err := a.Provide(t.Context(), asked); fault.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, not of kind %d with %q", asked, err, kind, says)
		}
	}
	refused(shop.host+"/other/app:1", fault.Invalid, "image_pull_allow")
	refused(shop.host+"/teamwork/app:1", fault.Invalid, "image_pull_allow")
	// A registry that cleans paths serves other/app for these.
	for _, path := range []string{"/team/../other/app:1", "/team/./../other/app:1", "/team//../other/app:1", "/team/app/..:1", "/team/.:1"} {
		refused(shop.host+path, fault.Invalid, "no image's name")
	}
	// Where a registry leads must be public, or opened.
	elsewhere := httptest.NewUnstartedServer(http.NotFoundHandler())
	elsewhere.Config.ErrorLog = log.New(io.Discard, "", 0)
	var arrived atomic.Int64
	elsewhere.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			arrived.Add(1)
		}
	}
	elsewhere.StartTLS()
	defer elsewhere.Close()
	shop.leads = elsewhere.URL
	refused(shop.host+"/team/led:1", fault.Invalid, "image_pull_redirect_allow")
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d connections where the registry led, at a loopback address", n)
	}
	var err error
	if pull.Reach, err = outbound.Parse([]string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	refused(shop.host+"/team/led:1", fault.Unavailable, "cannot be read from its registry") // its certificate is not known
	refused("node:22", fault.Invalid, "image_pull_allow")
	refused("python:3.14", fault.Invalid, "image_aliases") // the operator has said which one that is
	refused("library/python:3.14", fault.Invalid, "image_aliases")
	refused(shop.host+"/team/app:3", fault.Invalid, "has no image")
	refused("/etc/passwd", fault.Invalid, "no image's name")
	refused("oci:layout", fault.Invalid, "image_pull_allow")
	pull.Size = 1
	refused(shop.host+"/team/app:1", fault.Invalid, "cannot be pulled")
	pull.Size, pull.Time = 1<<20, time.Millisecond
	shop.before = func(ctx context.Context) { <-ctx.Done() }
	refused(shop.host+"/team/app:2", fault.Unavailable, "image_pull_timeout")
	// The disk fills, before and while an image is pulled.
	pull.Time = time.Minute
	full := 1
	pull.Room = func() error {
		if full--; full < 0 {
			return fault.New(fault.Unavailable, "the server is low on disk space")
		}
		return nil
	}
	refused(shop.host+"/team/app:2", fault.Unavailable, "low on disk space")
	refused(shop.host+"/team/app:2", fault.Unavailable, "low on disk space")
	a.Pull = nil
	refused(shop.host+"/team/app:1", fault.Invalid, "atoll image import")
	if left := leftovers(t, store); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if all, err := store.List(); err != nil || len(all) > 0 {
		t.Errorf("there are %v, %v", all, err)
	}
}

func TestWhereImagesMayBePulledFrom(t *testing.T) {
	for _, good := range []string{"docker.io/library/python", "registry.example.com/*", "ghcr.io/team/app", "127.0.0.1:5000/x/*"} {
		if err := image.CheckPull(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "*", "python", "docker.io/", "docker.io/lib*", "*/x", "a/*/b", "a/b@sha256:0", "a /b", "a/../b", "a/b/../*", "a/./*", "a//*", "a/B"} {
		if image.CheckPull(bad) == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
}
