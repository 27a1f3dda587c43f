package service

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
		if out, err := install(made).CombinedOutput(); err != nil {
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
	key := s.Tenant(t, "baponi", "pro")
	if out := python(t, "baponi_client.py", "BAPONI_BASE_URL="+s.URL, "BAPONI_API_KEY="+key); !strings.HasSuffix(out, "sync\nasync\nframeworks\n") {
		t.Errorf("got %s", out)
	}
}

// TestPublishedClientOfTheBridge drives the client that openai-agents has for Cloudflare's
// sandbox bridge.
func TestPublishedClientOfTheBridge(t *testing.T) {
	s := shared(t)
	s.Tenant(t, "bridge", "pro")
	var made struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/tenants/bridge/keys", map[string]any{"name": "sandboxes", "environment": "main", "scopes": []string{"sandboxes"}}).Into(t, http.StatusCreated, &made)
	if out := python(t, "cloudflare_client.py", "ATOLL_URL="+s.URL, "ATOLL_KEY="+made.Key); !strings.HasSuffix(out, "cloudflare\n") {
		t.Errorf("got %s", out)
	}
}
