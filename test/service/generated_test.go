package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// Versions of what reads the OpenAPI document: a fuzzer, and a generator of clients for each
// of Python and TypeScript. That for Go is the one that makes sdk/go.
const (
	fuzzer       = "schemathesis==4.32.5"
	pythonReader = "openapi-python-client==0.29.1"
)

var typescriptReaders = []string{"openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"}

// must runs a program to its success and returns what it says.
func must(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return said(t, cmd)
}

// said runs a program to its success and returns what it says.
func said(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := atolltest.Output(cmd)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// fuzz has schemathesis ask what the document allows, and what it does not: no answer is
// one of a server that fails, and all are as the document has them.
func (d *described) fuzz(t *testing.T) {
	bin := environmentOf(t, fuzzer)
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	hooks := []string{"PYTHONPATH=" + here, "SCHEMATHESIS_HOOKS=fuzz_hooks", "PYTHONDONTWRITEBYTECODE=1"}
	type part struct {
		key, which string
		seconds    int
	}
	for parts := []part{{d.key, "--exclude-path-regex", 15}, {d.admin, "--include-path-regex", 8}}; len(parts) > 0; parts = parts[1:] {
		part := parts[0]
		args := []string{
			"run", d.URL + "/openapi.json", "--no-color", "--header", "Authorization: Bearer " + part.key, part.which, "^/v1/admin/",
			"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
			"--phases", "coverage,fuzzing", "--max-examples", "3", "--max-time", strconv.Itoa(part.seconds), "--request-timeout", "30",
			"--seed", "17", "--no-shrink", "--generation-database", "none", "--warnings", "off",
		}
		out := must(t, t.TempDir(), hooks, filepath.Join(bin, "schemathesis"), args...)
		switch {
		case strings.Contains(out, "No test cases were generated") && part.seconds < 60:
			part.seconds *= 2 // a busy machine took all of it to begin
			parts = append(parts, part)
		case !strings.Contains(out, "No issues found"):
			t.Errorf("schemathesis says\n%s", out)
		}
	}
}

// generated is what each of the generated clients prints: the output of a program, and why
// an execution that there is not cannot be had.
const generated = "42 not_found\n"

// environmentOf makes a virtual environment with packages of PyPI, and returns its
// programs. It has no pip of its own, and compiles only what is imported.
func environmentOf(t *testing.T, requirements ...string) (bin string) {
	t.Helper()
	env := t.TempDir()
	must(t, env, nil, "python3", "-m", "venv", "--without-pip", env)
	bin = filepath.Join(env, "bin")
	must(t, env, nil, "python3", append([]string{"-m", "pip", "--python", filepath.Join(bin, "python"), "install", "-q", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"}, requirements...)...)
	return bin
}

// python generates a client without a warning, and calls the server with it.
func (d *described) python(t *testing.T) {
	bin, dir := environmentOf(t, pythonReader), copied(t)
	must(t, dir, nil, filepath.Join(bin, "openapi-python-client"), "generate", "--url", d.URL+"/openapi.json", "--meta", "none",
		"--output-path", "generated", "--config", "openapi-python-client.yaml", "--fail-on-warning")
	d.says(t, must(t, dir, d.env(), filepath.Join(bin, "python"), "client.py"))
}

// typescript does so for TypeScript, whose compiler checks the program's types.
func (d *described) typescript(t *testing.T) {
	dir := install(t, typescriptReaders...)
	source := copied(t)
	if err := os.Rename(filepath.Join(source, "client.ts"), filepath.Join(dir, "client.ts")); err != nil {
		t.Fatal(err)
	}
	out := must(t, dir, nil, "node_modules/.bin/openapi-typescript", d.URL+"/openapi.json", "--default-non-nullable", "false", "-o", "schema.d.ts")
	if strings.Contains(strings.ToLower(out), "warn") {
		t.Errorf("openapi-typescript says\n%s", out)
	}
	must(t, dir, nil, "node_modules/.bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--skipLibCheck", "client.ts")
	d.says(t, must(t, dir, d.env(), "node", "client.js"))
}

// golang does so for Go.
func (d *described) golang(t *testing.T) {
	dir := copied(t)
	modules, err := filepath.Abs("../../sdk/gen/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "api"), 0o750); err != nil {
		t.Fatal(err)
	}
	must(t, dir, nil, "go", "tool", "-modfile="+modules, "-n", "oapi-codegen") // reports the downloads, which are no warnings
	if out := must(t, dir, nil, "go", "tool", "-modfile="+modules, "oapi-codegen", "-config", "oapi-codegen.yaml", document); out != "" {
		t.Errorf("oapi-codegen says\n%s", out)
	}
	must(t, dir, nil, "go", "build", "-o", "client", ".")
	d.says(t, must(t, dir, d.env(), "./client"))
}

// copied is a folder with the programs that use generated clients.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/generated")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (d *described) env() []string { return []string{"ATOLL_URL=" + d.URL, "ATOLL_API_KEY=" + d.key} }

func (d *described) says(t *testing.T, got string) {
	t.Helper()
	if got != generated {
		t.Errorf("the generated client says %q, want %q", got, generated)
	}
}
