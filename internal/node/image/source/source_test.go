package source_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/imagetest"
	"github.com/atoll-run/atoll/internal/node/image/source"
)

// serve runs a registry on the loopback interface and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func push(t *testing.T, ref string, img v1.Image) {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, img); err != nil {
		t.Fatal(err)
	}
}

func writeLayout(t *testing.T, images ...mutate.IndexAddendum) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, images...)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func save(t *testing.T, img v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag("example/image:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	return file
}

// tarOf packs a folder into a tar file.
func tarOf(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layout.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func gzipped(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(file + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	z := gzip.NewWriter(out)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

// readLayers returns the names in all layers.
func readLayers(t *testing.T, img *source.Image) (names []string, err error) {
	t.Helper()
	for _, l := range img.Layers {
		r, err := l.Open(t.Context(), nil)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return nil, err
		}
		tr := tar.NewReader(bytes.NewReader(data))
		for {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			names = append(names, h.Name)
		}
	}
	return names, nil
}

func sample(t *testing.T) v1.Image {
	return imagetest.OCI(t, []string{"A=1"},
		imagetest.Layer(t, map[string]string{"low": "1"}),
		imagetest.Layer(t, map[string]string{"high": strings.Repeat("2", 10000)}))
}

func TestOpen(t *testing.T) {
	img := sample(t)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	ref := serve(t) + "/team/sample:1"
	push(t, ref, img)
	dir := writeLayout(t, mutate.IndexAddendum{Add: img})
	other := imagetest.OCI(t, nil)
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	saved := save(t, img)
	cases := []struct{ name, ref, digest string }{
		{"registry", ref, digest.String()},
		{"registry by digest", "docker://" + strings.TrimSuffix(ref, ":1") + "@" + digest.String(), digest.String()},
		{"layout", dir, digest.String()},
		{"layout with prefix", "oci:" + dir, digest.String()},
		{"layout of several platforms", writeLayout(t, mutate.IndexAddendum{Add: index}), digest.String()},
		{"layout in a tar", tarOf(t, dir), digest.String()},
		{"layout in a compressed tar", gzipped(t, tarOf(t, dir)), digest.String()},
		{"docker save", saved, config.String()},
		{"docker save, compressed", "docker-archive:" + gzipped(t, saved), config.String()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := source.Open(t.Context(), c.ref, source.Options{Temp: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if got.Digest != c.digest || got.Reference != c.ref || got.Config.Config.Env[0] != "A=1" {
				t.Fatalf("%+v", got)
			}
			names, err := readLayers(t, got)
			if err != nil || strings.Join(names, " ") != "low high" {
				t.Fatalf("%q, %v", names, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	img := sample(t)
	addr := serve(t)
	foreign := imagetest.OCI(t, nil)
	config, err := foreign.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture = "s390x"
	if foreign, err = mutate.ConfigFile(foreign, config); err != nil {
		t.Fatal(err)
	}
	odd, err := mutate.Append(empty.Image, mutate.Addendum{Layer: imagetest.Layer(t, map[string]string{"a": "1"}), MediaType: types.DockerForeignLayer, URLs: []string{"http://127.0.0.1:1/x"}})
	if err != nil {
		t.Fatal(err)
	}
	away, err := mutate.Append(img, mutate.Addendum{Layer: imagetest.Layer(t, map[string]string{"a": "1"}), URLs: []string{"https://localhost:1/x"}})
	if err != nil {
		t.Fatal(err)
	}
	push(t, addr+"/away:1", away)
	noLayout := t.TempDir()
	elsewhere, err := name.ParseReference(addr + "/elsewhere:1")
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: foreign, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
	if err := remote.WriteIndex(elsewhere, index); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, ref string
		kind      fault.Kind
	}{
		{"no such image", addr + "/none:1", fault.NotFound},
		{"a layer with URLs of its own", addr + "/away:1", fault.Invalid},
		{"registry without this platform", elsewhere.String(), fault.Invalid},
		{"no such file", "/no/such/file.tar", fault.NotFound},
		{"a port without a server", "127.0.0.1:1/a:1", fault.Unavailable},
		{"not a reference", "Not A Reference", fault.Invalid},
		{"a path that is not clean", "docker://" + addr + "/team/../none:1", fault.Invalid},
		{"not a layout", noLayout, fault.Invalid},
		{"another architecture", writeLayout(t, mutate.IndexAddendum{Add: foreign}), fault.Invalid},
		{"two images", writeLayout(t, mutate.IndexAddendum{Add: img}, mutate.IndexAddendum{Add: imagetest.OCI(t, nil)}), fault.Invalid},
		{"no image", writeLayout(t), fault.Invalid},
		{"foreign layer", writeLayout(t, mutate.IndexAddendum{Add: odd}), fault.Invalid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			img, err := source.Open(t.Context(), c.ref, source.Options{})
			if err == nil {
				img.Close()
			}
			if fault.KindOf(err) != c.kind {
				t.Fatalf("want kind %d, got %v", c.kind, err)
			}
		})
	}
}

// TestDamaged changes one byte of each blob of a layout in turn.
func TestDamaged(t *testing.T) {
	dir := writeLayout(t, mutate.IndexAddendum{Add: sample(t)})
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs/sha256/*"))
	if err != nil || len(blobs) != 4 {
		t.Fatalf("%q, %v", blobs, err)
	}
	for _, blob := range blobs {
		good, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		bad[len(bad)-5] ^= 1
		for what, data := range map[string][]byte{"changed": bad, "cut": good[:len(good)-1], "empty": {}} {
			if err := os.WriteFile(blob, data, 0o644); err != nil {
				t.Fatal(err)
			}
			img, err := source.Open(t.Context(), dir, source.Options{})
			if err == nil {
				_, err = readLayers(t, img)
				img.Close()
			}
			if err == nil {
				t.Errorf("a %s blob was taken", what)
			}
		}
		if err := os.Remove(blob); err != nil {
			t.Fatal(err)
		}
		img, err := source.Open(t.Context(), dir, source.Options{})
		if err == nil {
			_, err = readLayers(t, img)
			img.Close()
		}
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("a blob is missing: %v", err)
		}
		if err := os.WriteFile(blob, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEscape puts a link to a file outside into a layout.
func TestEscape(t *testing.T) {
	dir := writeLayout(t, mutate.IndexAddendum{Add: sample(t)})
	index := filepath.Join(dir, "index.json")
	outside := filepath.Join(t.TempDir(), "index.json")
	if err := os.Rename(index, outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, index); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Open(t.Context(), dir, source.Options{}); err == nil {
		t.Fatal("a file outside of the layout was read")
	}
}

// TestCutTarball cuts a docker save tarball at many places.
func TestCutTarball(t *testing.T) {
	data, err := os.ReadFile(save(t, sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cut.tar")
	for size := 0; size < len(data); size += 500 {
		if err := os.WriteFile(file, data[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		img, err := source.Open(t.Context(), file, source.Options{})
		var names []string
		if err == nil {
			names, err = readLayers(t, img)
			img.Close()
		}
		// Without its closing zeros the tarball still holds everything.
		if err == nil && strings.Join(names, " ") != "low high" {
			t.Fatalf("a tarball cut at %d of %d bytes was taken, with %q", size, len(data), names)
		}
	}
}

// TestNothingLeft shows that unpacking a tarball leaves no file.
func TestNothingLeft(t *testing.T) {
	temp := t.TempDir()
	img, err := source.Open(t.Context(), gzipped(t, save(t, sample(t))), source.Options{Temp: temp})
	if err != nil {
		t.Fatal(err)
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := fs.ReadDir(os.DirFS(temp), "."); err != nil || len(left) > 0 {
		t.Fatalf("%v, %v", left, err)
	}
}
