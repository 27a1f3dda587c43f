package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

type packagedEnvironment struct {
	Image        string
	PackageBuild *struct {
		State string
		Log   []string
	} `json:"package_build"`
}

// installed returns an environment whose packages are installed by then, or cannot be.
func installed(t *testing.T, s *atolltest.Server, path, want string) (e packagedEnvironment) {
	t.Helper()
	atolltest.Until(t, time.Minute, "what the log says of the packages is recorded", func() bool {
		e = packagedEnvironment{}
		s.Must(t, s.AdminKey(t), http.MethodGet, path, nil).Into(t, http.StatusOK, &e)
		return e.PackageBuild == nil || e.PackageBuild.State != "building"
	})
	if e.PackageBuild == nil || e.PackageBuild.State != want {
		t.Fatalf("%s is not %s: %+v", path, want, e.PackageBuild)
	}
	return e
}

// logged waits until the server has said something of its packages for the nth time.
func logged(t *testing.T, s *atolltest.Server, what string, n int) {
	t.Helper()
	atolltest.Until(t, 5*time.Minute, what, func() bool { return strings.Count(s.Log(), what) >= n })
}

// What a server says of packages.
const (
	installing   = "installing the packages of an environment"
	haveThem     = "installed the packages of an environment"
	cannotBe     = "cannot install the packages of an environment"
	removedImage = "removed an image with packages"
)

// images are the images with packages of a server.
func packageImages(t *testing.T, s *atolltest.Server) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.Data, "images", "packages-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unusedImage puts an image beside that of a folder, for which there is no use.
func unusedImage(t *testing.T, folder string) {
	t.Helper()
	record, err := os.ReadFile(filepath.Join(folder, "image.json"))
	if err != nil {
		t.Fatal(err)
	}
	name, unused := filepath.Base(folder), folder+"0"
	if err := os.Mkdir(unused, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unused, "image.json"), bytes.ReplaceAll(record, []byte(name), []byte(name+"0")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPackages installs packages of all three kinds into an environment's image, and runs
// programs in it: without a network, in executions and in named sandboxes.
func TestPackages(t *testing.T) {
	t.Parallel() // it waits for a network
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_PIP_INDEX=" + pipIndex(t), "ATOLL_NPM_REGISTRY=" + npmRegistry(t), "ATOLL_APT_ARCHIVE=http://" + tenant.PresetHosts("debian")[0] + "/debian"}})
	key, admin := s.Tenant(t, "packers", "enterprise"), s.AdminKey(t)
	const environment = "/v1/admin/tenants/packers/environments/main"
	packages := object{"apt": []string{"hello"}, "pip": []string{"six==1.17.0"}, "npm": []string{"is-odd"}}
	const want = "1.17.0\ntrue\nHello, world!\n"
	const code = "python3 -c 'import six; print(six.__version__)'; node -e 'console.log(require(\"is-odd\")(3))'; hello"
	if a := s.Must(t, admin, http.MethodPatch, environment, object{"packages": packages}); a.Status != http.StatusForbidden {
		t.Fatalf("a tenant without a network: HTTP %d: %s", a.Status, a.Body)
	}
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/packers", object{"network_enabled": true}).Into(t, http.StatusOK, nil)
	for _, bad := range []object{{"pip": []string{"--index-url=http://x"}}, {"npm": []string{"user/repo"}}, {"apt": []string{"./x.deb"}}} {
		if a := s.Must(t, admin, http.MethodPatch, environment, object{"packages": bad}); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "packages.") {
			t.Errorf("%v: HTTP %d: %s", bad, a.Status, a.Body)
		}
	}
	s.Must(t, admin, http.MethodPatch, environment, object{"packages": packages}).Into(t, http.StatusOK, nil)
	// It is being installed: the run waits, or is refused.
	if a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", object{"language": "bash", "code": "true"}); a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
		t.Errorf("while packages are installed: HTTP %d: %s", a.Status, a.Body)
	}
	logged(t, s, haveThem, 1)
	installed(t, s, environment, "ready")
	if r := runAs(t, s, key, atolltest.Program{Language: atolltest.Bash, Code: code + "; ls /root /var/cache/apt/archives/*.deb 2>/dev/null; cat /etc/resolv.conf", Timeout: 60}); r.Stdout != want {
		t.Errorf("got %q, want %q: %v", r.Stdout, want, r)
	}
	r := newResource(t, s, key, "default")
	if got := r.shell(code); got != want {
		t.Errorf("in a named sandbox %q", got)
	}

	// Another environment with the same is ready at once.
	if r := s.Must(t, admin, http.MethodPatch, environment, object{"image": "python:3.10"}); r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "atoll image import python:3.10") {
		t.Errorf("an environment with a registry's name: %d: %s", r.Status, r.Body)
	}
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/packers/environments", object{"name": "twin", "packages": packages}).Into(t, http.StatusCreated, nil)
	installed(t, s, "/v1/admin/tenants/packers/environments/twin", "ready")
	all := packageImages(t, s)
	if len(all) != 1 || strings.Count(s.Log(), "msg=\""+installing) != 1 {
		t.Errorf("the same packages were installed twice: images %q", all)
	}

	// What does not exist fails, with the installer's words, and can be tried again.
	none := "atoll-no-such-package-12345"
	s.Must(t, admin, http.MethodPatch, environment, object{"packages": object{"apt": []string{}, "npm": []string{}, "pip": []string{none}}}).Into(t, http.StatusOK, nil)
	logged(t, s, cannotBe, 1)
	if e := installed(t, s, environment, "failed"); !strings.Contains(strings.Join(e.PackageBuild.Log, "\n"), none) {
		t.Errorf("the log is %q", e.PackageBuild.Log)
	}
	if a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", object{"language": "bash", "code": "true"}); a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "could not be installed") {
		t.Errorf("after it has failed: HTTP %d: %s", a.Status, a.Body)
	}
	s.Must(t, admin, http.MethodPatch, environment, object{"packages": object{"pip": []string{none}}}).Into(t, http.StatusOK, nil)
	logged(t, s, cannotBe, 2)
	installed(t, s, environment, "failed")
	s.Must(t, admin, http.MethodPatch, environment, object{"packages": object{"pip": []string{}}}).Into(t, http.StatusOK, nil)
	if r := runAs(t, s, key, atolltest.Program{Language: atolltest.Bash, Code: "python3 -c 'import six' || echo gone", Timeout: 60}); !strings.Contains(r.Stdout, "gone") {
		t.Errorf("without packages: %v", r)
	}
	// The image goes when neither environments nor sandboxes have it.
	s.Must(t, admin, http.MethodDelete, "/v1/admin/tenants/packers/environments/twin", nil).Into(t, http.StatusNoContent, nil)
	unusedImage(t, all[0])
	logged(t, s, removedImage, 1)
	if left := packageImages(t, s); !slices.Equal(left, all) {
		t.Errorf("of the image of a sandbox and one of no use there is %q", left)
	}
}

// TestPackagesAfterAKill kills the server while it installs: the next one begins anew, and
// nothing is left of the first try.
func TestPackagesAfterAKill(t *testing.T) {
	t.Parallel() // it waits for a network
	env := []string{"ATOLL_PIP_INDEX=" + pipIndex(t)}
	s := atolltest.Start(t, atolltest.Options{Env: env})
	key, admin := s.Tenant(t, "packers", "enterprise"), s.AdminKey(t)
	const environment = "/v1/admin/tenants/packers/environments/main"
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/packers", object{"network_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, environment, object{"packages": object{"pip": []string{"six==1.17.0"}}}).Into(t, http.StatusOK, nil)
	logged(t, s, installing, 1)
	data := s.Keep(t)
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait(context.Background())
	s = atolltest.Start(t, atolltest.Options{Data: data, Env: env})
	logged(t, s, haveThem, 1)
	installed(t, s, environment, "ready")
	if r := runAs(t, s, key, atolltest.Program{Language: atolltest.Python, Code: "import six; print(six.__version__)", Timeout: 60}); r.Stdout != "1.17.0\n" {
		t.Errorf("after a kill: %v", r)
	}
	left, err := filepath.Glob(filepath.Join(s.Data, "images", ".tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
