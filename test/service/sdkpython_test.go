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

// llamaPackages are LlamaIndex and what an import of it takes beyond pythonPackages and
// crewPackages: all that it asks for is more than twice as large.
var llamaPackages = []string{
	"llama-index-core==0.14.25", "llama-index-instrumentation==0.6.0", "llama-index-workflows==2.26.1",
	"Deprecated==1.3.1", "Jinja2==3.1.6", "MarkupSafe==3.0.4", "SQLAlchemy==2.1.9", "banks==2.5.1", "colorama==0.4.6", "dataclasses-json==0.6.7", "fsspec==2026.9.0", "greenlet==3.5.6",
	"griffecli==2.4.1", "marshmallow==3.26.2", "mypy_extensions==1.2.0", "pillow==13.0.0", "platformdirs==4.14.8", "tinytag==2.3.2", "tqdm==4.70.1", "typing-inspect==0.9.0", "wrapt==2.5.2",
}

var llamaFolder = installed("llama-index", llamaPackages, func(dir string) *exec.Cmd {
	return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--no-deps", "--only-binary", ":all:", "--target", dir}, llamaPackages...)...)
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
	type folder = func() (string, error)
	run := func(t *testing.T, packages []folder, program string, args ...string) {
		path := []string{filepath.Join(library, "src")}
		for _, installed := range packages {
			dir, err := installed()
			if err != nil {
				t.Fatal(err)
			}
			path = append(path, dir)
		}
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-W", "ignore", filepath.Join("tests", program)}, args...)...)
		cmd.Dir = library
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "OPENAI_AGENTS_DISABLE_TRACING=1", "OTEL_SDK_DISABLED=true", "CREWAI_DISABLE_TELEMETRY=true",
			"PYTHONPATH=" + strings.Join(path, string(filepath.ListSeparator)), "ATOLL_BASE_URL=" + s.URL, "ATOLL_API_KEY=" + made.Key,
		}
		if out := said(t, cmd); !strings.HasSuffix(out, " 0 failed\n") {
			t.Errorf("it says %s", out)
		}
	}
	t.Run("snippets", func(t *testing.T) {
		t.Parallel()
		run(t, []folder{pythonFolder}, "snippets.py", "../../docs/reference/sdk/python.md", "../../docs/how-to/migrate-from-another-sandbox.md", "README.md")
	})
	t.Run("frameworks", func(t *testing.T) {
		t.Parallel()
		run(t, []folder{pythonFolder}, "frameworks.py", "langchain", "openai_agents", "anthropic", "deepagents")
	})
	t.Run("CrewAI and LlamaIndex", func(t *testing.T) {
		t.Parallel()
		run(t, []folder{pythonFolder, crewFolder, llamaFolder}, "frameworks.py", "crewai", "llama_index")
	})
	t.Run("Pydantic AI", func(t *testing.T) {
		t.Parallel()
		run(t, []folder{pydanticFolder}, "frameworks.py", "pydantic_ai")
	})
}
