package service

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// Versions of what is installed from PyPI for the tests: other people's clients, and the
// frameworks that they have modules for.
var pythonPackages = []string{
	"baponi==0.5.1", "openai-agents==0.24.0", "aiohttp==3.14.5",
	"anthropic==2.12.0", "langchain-core==1.7.2", "google-genai==2.34.0", "deepagents==0.7.32",
	"e2b==2.63.0", "e2b-code-interpreter==2.11.5",
	"openai==3.54.0", "perplexityai==0.46.1", "langchain-openai==1.7.3",
}

// pythonFolder returns the folder that the packages are in.
var pythonFolder = installed("python", pythonPackages, func(dir string) *exec.Cmd {
	return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:", "--target", dir}, pythonPackages...)...)
})

// crewPackages are CrewAI and what an import of it takes beyond pythonPackages: all that it
// asks for is seven times as large.
var crewPackages = []string{
	"crewai==1.15.30", "crewai-core==1.15.30", "chromadb==1.5.9", "numpy==2.4.6", "pybase64==1.5.1", "overrides==7.7.0",
	"aiofiles==25.1.0", "aiosqlite==0.22.1", "appdirs==1.4.4", "json5==0.17.3", "json_repair==0.64.6", "jsonref==1.1.0", "portalocker==4.4.2", "tomli==2.5.0",
	"opentelemetry-api==1.45.2", "opentelemetry-sdk==1.45.2", "opentelemetry-proto==1.45.2", "opentelemetry-semantic-conventions==0.66b2",
	"opentelemetry-exporter-otlp-proto-http==1.45.2", "opentelemetry-exporter-otlp-proto-common==1.45.2", "opentelemetry-exporter-otlp-common==0.66b2",
	"opentelemetry-exporter-http-transport==0.66b2", "googleapis-common-protos==1.76.0", "protobuf==7.36.2",
}

// crewFolder returns the folder that crewPackages are in.
var crewFolder = installed("crew", crewPackages, func(dir string) *exec.Cmd {
	return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--no-deps", "--only-binary", ":all:", "--target", dir}, crewPackages...)...)
})

// installed returns a function that returns a folder with packages. They are installed
// once for all tests, and kept beside the tests' other data.
func installed(kind string, packages []string, install func(dir string) *exec.Cmd) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		image, err := atolltest.ImageDir()
		if err != nil {
			return "", err
		}
		data := filepath.Dir(filepath.Dir(image))
		sum := sha256.Sum256([]byte(strings.Join(packages, " ")))
		dir := filepath.Join(data, kind+"-"+hex.EncodeToString(sum[:8]))
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		}
		made, err := os.MkdirTemp(data, kind+"-new-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(made)
		if out, err := atolltest.Output(install(made)); err != nil {
			return "", &installError{err, string(out)}
		}
		return dir, os.Rename(made, dir)
	})
}

type installError struct {
	error
	said string
}

func (e *installError) Error() string { return "install packages: " + e.error.Error() + "\n" + e.said }

// python runs a program of testdata with the packages.
func python(t *testing.T, name string, env ...string) string {
	t.Helper()
	packages, err := pythonFolder()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-W", "ignore", filepath.Join("testdata", name))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONPATH=" + packages, "OPENAI_AGENTS_DISABLE_TRACING=1"}, env...)
	return said(t, cmd)
}

// TestPublishedClientOfTheContract drives the contract's own client for Python: sync,
// async, and its modules for frameworks.
func TestPublishedClientOfTheContract(t *testing.T) {
	s := shared(t)
	env := []string{"BAPONI_BASE_URL=" + s.URL, "BAPONI_API_KEY=" + s.Tenant(t, "baponi", "pro")}
	t.Run("surface", func(t *testing.T) {
		t.Parallel()
		if out := python(t, "baponi_client.py", env...); !strings.HasSuffix(out, "sync\nasync\nframeworks\n") {
			t.Errorf("got %s", out)
		}
	})
	t.Run("openai-agents and CrewAI", func(t *testing.T) {
		t.Parallel()
		packages, err := pythonFolder()
		if err != nil {
			t.Fatal(err)
		}
		crew, err := crewFolder()
		if err != nil {
			t.Fatal(err)
		}
		quiet := []string{"PYTHONPATH=" + packages + string(filepath.ListSeparator) + crew, "OTEL_SDK_DISABLED=true", "CREWAI_DISABLE_TELEMETRY=true"}
		if out := python(t, "baponi_frameworks.py", slices.Concat(env, quiet)...); out != "openai\ncrewai\n" {
			t.Errorf("got %s", out)
		}
	})
}

// TestPublishedClientOfTheBridge drives the client that openai-agents has for Cloudflare's
// sandbox bridge.
func TestPublishedClientOfTheBridge(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "bridge", "pro")
	var made struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/tenants/bridge/keys", map[string]any{"name": "sandboxes", "environment": "main", "scopes": []string{"sandboxes"}}).Into(t, http.StatusCreated, &made)
	if out := python(t, "cloudflare_client.py", "ATOLL_URL="+s.URL, "ATOLL_KEY="+made.Key); !strings.HasSuffix(out, "cloudflare\n") {
		t.Errorf("got %s", out)
	}
	for _, source := range []string{"file_read", "file_write"} {
		if got := active(t, s, key, "source="+source+"&executed_code_hash="+hashOf("/home/user/dir/a.bin")); len(got) == 0 {
			t.Errorf("no %s of the file's path is in the activity: %+v", source, active(t, s, key, "source="+source))
		}
	}
}
