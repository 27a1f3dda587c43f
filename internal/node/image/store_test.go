package image_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/image/imagetest"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

func open(t *testing.T) *image.Store {
	t.Helper()
	s, err := image.Open(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// layoutOf writes an image as an OCI layout and returns its folder.
func layoutOf(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})); err != nil {
		t.Fatal(err)
	}
	return dir
}

func small(t *testing.T) v1.Image {
	return imagetest.OCI(t, []string{"PATH=/opt/bin:/bin", "A=b=c", "junk"},
		imagetest.Layer(t, map[string]string{"bin/bash": "x", "opt/bin/python": "x", "gone": "x", "etc/passwd": "root:x:0:0::/root:/bin/sh", "etc/shadow": "root:*:1::::::"}),
		imagetest.Layer(t, map[string]string{".wh.gone": "", "bin/nodejs": "x"}))
}

// leftovers are the entries of a store's folder that are no images.
func leftovers(t *testing.T, s *image.Store) (left []string) {
	t.Helper()
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".tmp") {
			left = append(left, e.Name())
		}
	}
	return left
}

func TestImportFromRegistry(t *testing.T) {
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer srv.Close()
	ref := strings.TrimPrefix(srv.URL, "http://") + "/small:1"
	tag, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	oci := small(t)
	if err := remote.Write(tag, oci); err != nil {
		t.Fatal(err)
	}
	digest, err := oci.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t)
	var reports []image.Report
	img, err := s.Import(t.Context(), image.ImportOptions{
		Name: "small", Source: ref, Progress: func(r image.Report) { reports = append(reports, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if img.Digest != digest.String() || img.Source != ref || img.Env["A"] != "b=c" || img.Env["junk"] != "" || img.Size == 0 || img.Created.IsZero() {
		t.Fatalf("%+v", img)
	}
	for language, want := range map[execution.Language]string{execution.Python: "/opt/bin/python", execution.Node: "/bin/nodejs", execution.Bash: "/bin/bash"} {
		if in, ok := img.Interpreter(language); !ok || in.Path != want {
			t.Errorf("%s: %+v", language, in)
		}
	}
	last := image.Report{}
	for _, r := range reports {
		if r.Total > 0 {
			last = r
		}
	}
	if last.Done != last.Total || last.Total == 0 {
		t.Errorf("the last report of bytes is %+v", last)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	root := imagetest.Mount(t, img.Rootfs.Image)
	for _, gone := range []string{"gone", ".wh.gone"} {
		if _, err := os.Lstat(filepath.Join(root, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "run", runtime.GuestDir, runtime.Home} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if want := "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/bash\n"; err != nil || string(passwd) != want {
		t.Errorf("passwd: %q, %v", passwd, err)
	}
	shadow, err := os.ReadFile(filepath.Join(root, "etc/shadow"))
	if want := "root:*:1::::::\nuser:*:::::::\n"; err != nil || string(shadow) != want {
		t.Errorf("shadow: %q, %v", shadow, err)
	}
	if _, err := os.Stat(filepath.Join(root, "etc/gshadow")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("gshadow, which the image lacks: %v", err)
	}
	again, err := s.Get("small")
	if err != nil || again.Rootfs.Image != img.Rootfs.Image || len(again.Interpreters) != 3 {
		t.Fatalf("%+v, %v", again, err)
	}
}

func TestImportRefused(t *testing.T) {
	good := layoutOf(t, small(t))
	inTheWay := layoutOf(t, imagetest.OCI(t, nil, imagetest.Layer(t, map[string]string{"proc": "a file"})))
	hostile := layoutOf(t, imagetest.OCI(t, nil, imagetest.Layer(t, map[string]string{"../x": "1"})))
	cases := []struct {
		name string
		opts image.ImportOptions
		kind fault.Kind
	}{
		{"upper case", image.ImportOptions{Name: "Small", Source: good}, fault.Invalid},
		{"path", image.ImportOptions{Name: "../small", Source: good}, fault.Invalid},
		{"hidden", image.ImportOptions{Name: ".locks", Source: good}, fault.Invalid},
		{"empty", image.ImportOptions{Source: good}, fault.Invalid},
		{"host", image.ImportOptions{Name: "host", Source: good}, fault.Invalid},
		{"taken", image.ImportOptions{Name: "taken", Source: good}, fault.Conflict},
		{"no source", image.ImportOptions{Name: "a", Source: "/no/such/thing"}, fault.NotFound},
		{"proc is a file", image.ImportOptions{Name: "a", Source: inTheWay}, fault.Invalid},
		{"hostile", image.ImportOptions{Name: "a", Source: hostile}, fault.Invalid},
		{"over a limit", image.ImportOptions{Name: "a", Source: good, Limits: layer.Limits{Entries: 2}}, fault.Invalid},
		{"bad preload", image.ImportOptions{Name: "a", Source: good, Preloads: []string{"os; evil()"}}, fault.Invalid},
	}
	s := open(t)
	if _, err := s.Import(t.Context(), image.ImportOptions{Name: "taken", Source: good}); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.Import(t.Context(), c.opts); fault.KindOf(err) != c.kind {
				t.Fatalf("want kind %d, got %v", c.kind, err)
			}
			if left := leftovers(t, s); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	if all, err := s.List(); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
}

func TestCancelledImport(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Import(ctx, image.ImportOptions{
		Name: "a", Source: layoutOf(t, small(t)),
		Progress: func(image.Report) { cancel() },
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestReplaceAndRemove(t *testing.T) {
	s := open(t)
	source := layoutOf(t, small(t))
	opts := image.ImportOptions{Name: "a", Source: source}
	if _, err := s.Import(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	other, err := image.Open(s.Dir()) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	img, release, err := other.Use("a")
	if err != nil {
		t.Fatal(err)
	}
	opts.Replace = true
	if _, err := s.Import(t.Context(), opts); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("replaced while in use: %v", err)
	}
	if err := s.Remove("a"); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("removed while in use: %v", err)
	}
	if _, err := os.Stat(img.Rootfs.Image); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"remove again": s.Remove("a"),
		"get":          func() error { _, err := s.Get("a"); return err }(),
		"use":          func() error { _, _, err := s.Use("a"); return err }(),
	} {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSweep shows that what a crash left goes with the next start, and that a
// running import keeps its files.
func TestSweep(t *testing.T) {
	s := open(t)
	dead := filepath.Join(s.Dir(), ".tmp-dead")
	if err := os.MkdirAll(filepath.Join(dead, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	swept := 0
	_, err := s.Import(t.Context(), image.ImportOptions{
		Name: "a", Source: layoutOf(t, small(t)),
		Progress: func(image.Report) {
			if _, err := image.Open(s.Dir()); err != nil {
				t.Error(err)
			}
			if len(leftovers(t, s)) == 2 {
				swept++
			}
		},
	})
	if err != nil || swept == 0 {
		t.Fatalf("%v, %d", err, swept)
	}
	if _, err := image.Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
