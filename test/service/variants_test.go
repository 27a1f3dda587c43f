package service

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/image/imagetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// smallVariant writes the archive of an image with this machine's Python and Bash, and with a
// program in the place of Chromium that "prints" PDF files.
func smallVariant(t *testing.T) string {
	t.Helper()
	files := map[string]string{
		"tmp/": "", "etc/variant": "with a browser\n",
		"usr/lib/chromium/chromium": "#!/bin/bash\nfor a in \"$@\"; do case $a in --print-to-pdf=*) echo %PDF-1.4 > \"${a#*=}\";; esac; done\n",
	}
	add := func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(path, "/")] = string(data)
	}
	add("/bin/bash")
	add("/usr/bin/python3")
	libraries, err := filepath.Glob("/usr/lib/python3.*/os.py")
	if err != nil || len(libraries) == 0 {
		t.Fatalf("this machine has no Python of Debian's: %v", err)
	}
	programs := []string{"/bin/bash", "/usr/bin/python3"}
	for _, of := range libraries {
		if err := filepath.WalkDir(filepath.Dir(of), func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && (e.Name() == "__pycache__" || e.Name() == "test" || e.Name() == "dist-packages"):
				return fs.SkipDir
			case e.Type().IsRegular():
				add(path)
				if filepath.Ext(path) == ".so" {
					programs = append(programs, path)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	needed, err := exec.Command("ldd", programs...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(needed)) {
		if strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") {
			add(word)
		}
	}
	dir := t.TempDir()
	oci, archive := filepath.Join(dir, "oci.tar"), filepath.Join(dir, "variant.tar.zst")
	if err := tarball.WriteToFile(oci, name.MustParseReference("small:latest"), imagetest.OCI(t, nil, imagetest.Layer(t, files))); err != nil {
		t.Fatal(err)
	}
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"import", "--name", "small", oci}, {"export", "small", archive}} {
		if out, err := exec.Command(binary, append([]string{"image", args[0], "--data-dir", dir}, args[1:]...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
	return archive
}

// variantBuild is how far the image of an environment is.
func variantBuild(t *testing.T, s *atolltest.Server, environment string) (state, log string) {
	t.Helper()
	var e struct {
		PackageBuild *struct {
			State string
			Log   []string
		} `json:"package_build"`
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, environment, nil).Into(t, http.StatusOK, &e)
	if e.PackageBuild == nil {
		return "", ""
	}
	return e.PackageBuild.State, strings.Join(e.PackageBuild.Log, "\n")
}

// TestVariantOnFirstUse: an agent's tool waits for the variant of the default image that its skill
// needs, and an environment gets the variant that is its image. The server imports both when they are
// needed. An import that is cut short or fails is made again by the next process, although nobody
// asks. While it has failed, calls say why and how to go on.
func TestVariantOnFirstUse(t *testing.T) {
	dir := t.TempDir()
	both, browser := filepath.Join(dir, "both.tar.zst"), filepath.Join(dir, "browser.tar.zst")
	sources, err := json.Marshal(map[string]string{"default+browser,office": both, "default+browser": browser})
	if err != nil {
		t.Fatal(err)
	}
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_IMAGE_VARIANTS=import", "ATOLL_IMAGE_VARIANT_SOURCES="+string(sources))
	s := line.now()
	restart := func(archive string) { // with an archive that was missing
		t.Helper()
		if err := os.Rename(smallVariant(t), archive); err != nil {
			t.Fatal(err)
		}
		line.next(syscall.SIGKILL)
		if s = line.now(); s.WaitReady(t.Context()) != nil {
			t.Fatal("the next server is not ready")
		}
	}
	key := s.Tenant(t, "variants", "enterprise")
	addModel(t, s, "clerk", planner(t).URL, "tools")
	var made struct{ ID string }
	s.Must(t, key, http.MethodPost, "/v1/agents", map[string]any{"name": "Clerk", "model": map[string]string{"name": "clerk"}, "tools": []any{map[string]string{"type": "sandbox"}}, "skills": []any{"file-management"}}).Into(t, http.StatusCreated, &made)
	session := func(steps ...toolStep) string {
		t.Helper()
		plan, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		var of struct{ ID string }
		s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]string{"agent_id": made.ID}).Into(t, http.StatusCreated, &of)
		s.Must(t, key, http.MethodPost, "/v1/sessions/"+of.ID+"/events", map[string]string{"type": "message", "content": string(plan)}).Into(t, http.StatusOK, nil)
		return string(s.Must(t, key, http.MethodGet, "/v1/sessions/"+of.ID+"/events?limit=100", nil).Body)
	}
	code := func(line string) toolStep {
		return toolStep{"run_code", map[string]any{"language": "bash", "code": line}}
	}
	toPDF := func(from string) toolStep {
		return toolStep{"convert_document", map[string]any{"file_path": from, "to_path": "notes.pdf"}}
	}

	// The variant is being read from a pipe that nobody writes to. The first call does not need it, so
	// it runs at once in the default image, which lacks a browser. The second call says so.
	if err := unix.Mkfifo(both, 0o600); err != nil {
		t.Fatal(err)
	}
	events := session(code("echo '# Minutes' > notes.md; cat /etc/variant || echo without"), toPDF("notes.md"))
	for _, want := range []string{`"code":"image_building"`, "without", "lacks programs that the tool needs: the server is making the image"} {
		if !strings.Contains(events, want) {
			t.Errorf("a sandbox that started before does not say %q: %s", want, events)
		}
	}
	restart(both)
	events = session(toPDF("none.md"), code("echo '# Minutes' > notes.md; read -r line < /etc/variant; echo $line"), toPDF("notes.md"))
	if !strings.Contains(events, "with a browser") || !strings.Contains(events, "Converted notes.md to notes.pdf, 9 bytes.") {
		t.Errorf("a sandbox whose first call waits for it: %s", events)
	}

	const environment = "/v1/admin/tenants/variants/environments/main"
	execute := func() *atolltest.Answer {
		t.Helper()
		return s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": "bash", "code": "read -r line < /etc/variant; echo $line"})
	}
	if a := s.Must(t, s.AdminKey(t), http.MethodPatch, environment, map[string]any{"image": "default+java"}); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "default+browser") {
		t.Errorf("an unknown extra: HTTP %d: %s", a.Status, a.Body)
	}
	if state, _ := variantBuild(t, s, environment); state != "" {
		t.Errorf("with the default image the environment's image is %s", state)
	}
	s.Must(t, s.AdminKey(t), http.MethodPatch, environment, map[string]any{"image": "default+browser"}).Into(t, http.StatusOK, nil)
	var a *atolltest.Answer
	atolltest.Until(t, time.Minute, "the import fails", func() bool { a = execute(); return a.Status != http.StatusServiceUnavailable })
	if a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "its prebuilt archive could not be imported") || !strings.Contains(string(a.Body), "atoll image build --with browser") {
		t.Errorf("after it has failed: HTTP %d: %s", a.Status, a.Body)
	}
	if state, log := variantBuild(t, s, environment); state != "failed" || !strings.Contains(log, "its prebuilt archive could not be imported") {
		t.Errorf("the environment is %q: %s", state, log)
	}
	restart(browser)
	atolltest.Until(t, time.Minute, "the variant is imported", func() bool { state, _ := variantBuild(t, s, environment); return state == "ready" })
	var out struct{ Stdout string }
	if execute().Into(t, http.StatusOK, &out); out.Stdout != "with a browser\n" {
		t.Errorf("in the variant: %+v", out)
	}
	if n := s.Metrics(t).Sum("atoll_image_builds_total", "kind=variant", "result=ready"); n != 1 {
		t.Errorf("counted %v", n)
	}
}

// TestVariantsOff: a server that makes no variants names the command.
func TestVariantsOff(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "novariants", "enterprise")
	for what, a := range map[string]*atolltest.Answer{
		"an environment":  s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/novariants/environments/main", map[string]any{"image": "default+browser"}),
		"a named sandbox": s.Must(t, key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "b", "image": "default+browser"}),
	} {
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "atoll image build --with browser") {
			t.Errorf("%s: HTTP %d: %s", what, a.Status, a.Body)
		}
	}
}
