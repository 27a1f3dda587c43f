package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// TestBadMirror runs mmdebstrap against an archive that is not there.
func TestBadMirror(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Chmod(os.Getenv("TMPDIR"), 0o755); err != nil {
		t.Fatal(err)
	}
	var heard []string
	err := Bootstrap(t.Context(), Options{
		Mirror:   "http://user:secret@127.0.0.1:1/debian",
		Progress: func(line string) { heard = append(heard, line) },
	}, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Unavailable || !strings.Contains(f.Msg, "Failed to fetch http://127.0.0.1:1/debian") || strings.Contains(f.Msg, "secret") {
		t.Fatalf("want an Unavailable fault that names the mirror without its password, got %+v", f)
	}
	if said := strings.Join(heard, "\n"); !strings.Contains(said, "apt-get update") || !strings.Contains(said, "this archive failed: ") ||
		strings.Contains(said, "secret") || strings.Contains(said, os.Getenv("TMPDIR")) {
		t.Errorf("progress, which tenants see: %q", heard)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestReasonIsShowable: the reason for a failure reaches tenants.
func TestReasonIsShowable(t *testing.T) {
	long := "//user:secret" + strings.Repeat("x", maxReason) + "@host/debian"
	for line, want := range map[string]string{
		"E: Failed to fetch http:" + long:                                                  ": Failed to fetch http://host/debian",
		"E: cannot write /var/tmp/atoll-build-123/mmdebstrap.aB_9/etc/x: No space":         ": cannot write /etc/x: No space",
		"E: rmdir '/scratch/of/somebody/atoll-build-123': Device or resource busy":         ": rmdir '': Device or resource busy",
		"E: " + strings.Repeat("y", 2*maxReason):                                           ": " + strings.Repeat("y", maxReason),
		"I: a step of http://user:secret@host, in /var/tmp/atoll-build-1/mmdebstrap.A/tmp": "",
	} {
		if got := reason([]error{&failure{lines: []string{line}}}); got != want {
			t.Errorf("of %q: %q, want %q", line, got, want)
		}
	}
}

// TestCancel stops mmdebstrap once it is at work.
func TestCancel(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Chmod(os.Getenv("TMPDIR"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Bootstrap(ctx, Options{
		Mirror:   "http://127.0.0.1:1/debian",
		Progress: func(string) { cancel() },
	}, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestStaleFolders: a build removes what earlier ones left that were killed with their watchdogs, and
// spares those that run, that are new, and other files.
func TestStaleFolders(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	past := time.Now().Add(-time.Hour)
	age := func(path string) {
		t.Helper()
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	running, lock, err := tempFolder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	age(running)
	kept := []string{filepath.Base(running)}
	for name, keep := range map[string]bool{"atoll-build-1": false, "atoll-build-2": true, "other": true} {
		file := filepath.Join(dir, name, "mmdebstrap.a", "etc")
		if err := os.MkdirAll(file, 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "atoll-build-2" {
			age(filepath.Join(dir, name))
		}
		if keep {
			kept = append(kept, name)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "atoll-build-3")); err != nil {
		t.Fatal(err)
	}
	next, second, err := tempFolder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	kept = append(kept, "atoll-build-3", filepath.Base(next))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if slices.Sort(kept); !slices.Equal(left, kept) {
		t.Errorf("left are %q, want %q", left, kept)
	}
}

func TestMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Available()
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "apt-get install mmdebstrap") {
		t.Fatal(err)
	}
}

func TestSubordinate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(file, []byte("other:1:2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := subordinate(file); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "usermod") {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "other:1:2\n%d:100000:65536\n", os.Getuid()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := subordinate(file, file); err != nil {
		t.Fatal(err)
	}
}

func TestExpired(t *testing.T) {
	var steps []string
	log := &tail{progress: func(s string) { steps = append(steps, s) }}
	io.WriteString(log, "I: running apt-get update...\n10%\r50%\rE: Release file for http://example/InRelease is expired (invalid since 3d). Updates for this repository will not be applied.\n\nlast")
	if !(&failure{lines: log.lines}).expired() {
		t.Fatalf("%q", log.lines)
	}
	if (&failure{lines: []string{"E: Unable to locate package python3"}}).expired() {
		t.Fatal("another failure counts as expired")
	}
	if len(steps) != 1 || steps[0] != "running apt-get update" {
		t.Fatalf("%q", steps)
	}
}

func TestMirrors(t *testing.T) {
	stanza := "Types: deb\n# a comment: with a colon\nURIs: http://one.example/debian\nSuites: trixie trixie-updates\nComponents: main\n"
	security := "Types: deb\nURIs: http://security.example/debian-security\nSuites: trixie-security\nComponents: main\n"
	other := "Types: deb\nURIs: http://other.example/\nSuites: trixie\nComponents: stable\n"
	source := "Types: deb-src\nURIs: http://src.example/\nSuites: trixie\nComponents: main\n"
	list := "Types: deb\nURIs: mirror+file:/etc/apt/mirrors/debian.list\nSuites: trixie\nComponents: main\n"
	for text, want := range map[string]string{
		security + "\n" + other + "\n" + source + "\n" + stanza: "http://one.example/debian",
		list:     "",
		security: "",
		"":       "",
	} {
		if got := fromStanzas(text, "trixie"); got != want {
			t.Errorf("got %q, want %q from\n%s", got, want, text)
		}
	}
	for text, want := range map[string]string{
		"# deb http://no.example trixie main\ndeb [signed-by=/k.gpg arch=amd64] https://one.example/debian trixie main contrib\n": "https://one.example/debian",
		"deb https://tool.example/linux/debian trixie stable\n":                                                                   "",
		"deb https://one.example/debian trixie-updates main\n":                                                                    "",
		"deb-src https://one.example/debian trixie main\ndeb [broken trixie main":                                                 "",
	} {
		if got := fromLines(text, "trixie"); got != want {
			t.Errorf("got %q, want %q from\n%s", got, want, text)
		}
	}
	file := filepath.Join(t.TempDir(), "os-release")
	if err := os.WriteFile(file, []byte("ID=debian\nVERSION_CODENAME=\"trixie\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := osRelease(file); got["ID"] != "debian" || got["VERSION_CODENAME"] != "trixie" {
		t.Errorf("%v", got)
	}
}

func TestFinish(t *testing.T) {
	root := erofs.NewDir(0o755)
	for _, name := range []string{
		"/usr/lib/python3.14/EXTERNALLY-MANAGED", "/usr/lib/python3.14/os.py", "/var/log/apt/history.log",
		"/usr/lib/python3/dist-packages/pandas/tests/x.py", "/usr/lib/python3/dist-packages/pandas/core/x.py",
		"/usr/lib/python3/dist-packages/requests/tests/x.py", "/var/cache/matplotlib/fontlist.json", "/etc/resolv.conf",
	} {
		if err := tree.Put(root, name, erofs.NewFile(0o644, "from the packages")); err != nil {
			t.Fatal(err)
		}
	}
	if err := Finish(root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"/usr/lib/python3.14/EXTERNALLY-MANAGED": false, "/usr/lib/python3.14/os.py": true,
		"/usr/lib/python3/dist-packages/pandas/tests": false, "/usr/lib/python3/dist-packages/pandas/core/x.py": true,
		"/usr/lib/python3/dist-packages/requests/tests/x.py": true,
		"/var/log/apt/history.log":                           false, "/var/log": true,
	} {
		if _, _, err := tree.Lookup(root, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Env()["MPLCONFIGDIR"] != "" {
		t.Error("a variable hides the user's configuration of matplotlib")
	}
	if n, _, err := tree.Lookup(root, "/usr/local/bin/atoll-web"); err != nil || n.Mode&0o111 != 0o111 {
		t.Errorf("%+v, %v", n, err)
	}
	if data, err := tree.ReadFile(root, "/usr/lib/python3/dist-packages/atoll_web.py", 1<<20); err != nil || string(data) != webModule {
		t.Errorf("the module: %d bytes, %v", len(data), err)
	}
	if data, err := tree.ReadFile(root, "/etc/resolv.conf", 100); err != nil || len(data) > 0 {
		t.Errorf("resolv.conf: %q, %v", data, err)
	}
	if err := Finish(erofs.NewDir(0o755)); err == nil {
		t.Error("a tree without Python was taken")
	}
}

// TestSearchModule: the client of searches asks the server that the sandbox's variables name.
func TestSearchModule(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/search" || r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !strings.Contains(string(body), `"query": "atolls"`) || !strings.Contains(string(body), `"max_results": 2`) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `{"id": "1", "results": [{"title": "T", "url": "U", "snippet": "S"}]}`)
	}))
	defer s.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "perplexity.py"), []byte(searchModule), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-c", `import asyncio, perplexity
a = perplexity.Perplexity().search.create(query="atolls", max_results=2)
async def ask():
    async with perplexity.AsyncPerplexity() as client:
        return await client.search.create(query="atolls", max_results=2)
b = asyncio.run(ask())
print(a.results[0].title, a.results[0].date, b.results[0].url, b.model_dump()["results"][0]["snippet"])
for key, query in ("other", "x"), ("key", "x"):
    try: perplexity.Perplexity(api_key=key).search.create(query=query)
    except perplexity.APIStatusError as e: print(type(e).__name__, e.status_code)
try: a = perplexity.Perplexity().chat
except AttributeError as e: print(e)`)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PERPLEXITY_API_KEY=key", "PERPLEXITY_BASE_URL="+s.URL)
	out, err := cmd.CombinedOutput()
	if want := "T None U S\nAuthenticationError 401\nBadRequestError 400\nthis image's client only searches: client.search.create. 'pip install perplexityai' brings client.chat\n"; err != nil || string(out) != want {
		t.Errorf("%v, %s", err, out)
	}
}

// TestExtras: an image can have more packages, and its recipe tells which.
func TestExtras(t *testing.T) {
	include := func(with ...string) string {
		for _, a := range arguments("", false, with) {
			if list, ok := strings.CutPrefix(a, "--include="); ok {
				return list
			}
		}
		return ""
	}
	if strings.Contains(include(), "chromium") || !strings.Contains(include("browser"), ",chromium") || !strings.Contains(include("browser", "office"), "libreoffice-writer") {
		t.Errorf("%s", include("browser", "office"))
	}
	if Recipe(nil) == Recipe([]string{"browser"}) || Recipe([]string{"office", "browser"}) != Recipe([]string{"browser", "office", "office"}) {
		t.Error("recipes do not tell extras apart")
	}
	if with, err := CheckExtras([]string{"office", "browser", "office"}); err != nil || strings.Join(with, ",") != "browser,office" {
		t.Errorf("%q, %v", with, err)
	}
	if _, err := CheckExtras([]string{"games"}); fault.KindOf(err) != fault.Invalid || err.Error() != `unknown extra "games"; an image can be built with browser, office` {
		t.Error(err)
	}
}
