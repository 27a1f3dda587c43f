package service

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pydanticPackages are Pydantic AI, which asks for other versions than pythonPackages have.
var pydanticPackages = []string{"pydantic-ai-slim==2.68.0", "httpx==0.28.1"}

var pydanticFolder = installed("pydantic-ai", pydanticPackages, func(dir string) *exec.Cmd {
	return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:", "--target", dir}, pydanticPackages...)...)
})

// TestPythonLibrary runs the snippets of the Python library's documentation, and each framework's
// published package with the library's tools.
func TestPythonLibrary(t *testing.T) {
	s := shared(t)
	s.Tenant(t, "sdkpython", "pro")
	var made struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/tenants/sdkpython/keys", map[string]any{
		"name": "library", "environment": "main", "scopes": []string{"execute", "read", "tools", "sandboxes"},
	}).Into(t, http.StatusCreated, &made)
	library, err := filepath.Abs("../../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, packages func() (string, error), program string, args ...string) {
		folder, err := packages()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-W", "ignore", filepath.Join("tests", program)}, args...)...)
		cmd.Dir = library
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "OPENAI_AGENTS_DISABLE_TRACING=1",
			"PYTHONPATH=" + filepath.Join(library, "src") + string(filepath.ListSeparator) + folder, "ATOLL_BASE_URL=" + s.URL, "ATOLL_API_KEY=" + made.Key,
		}
		if out := said(t, cmd); !strings.HasSuffix(out, " 0 failed\n") {
			t.Errorf("it says %s", out)
		}
	}
	t.Run("snippets", func(t *testing.T) {
		t.Parallel()
		run(t, pythonFolder, "snippets.py", "../../docs/sdk/python.md", "README.md")
	})
	t.Run("frameworks", func(t *testing.T) {
		t.Parallel()
		run(t, pythonFolder, "frameworks.py", "langchain", "openai_agents", "anthropic")
	})
	t.Run("Pydantic AI", func(t *testing.T) {
		t.Parallel()
		run(t, pydanticFolder, "frameworks.py", "pydantic_ai")
	})
}
