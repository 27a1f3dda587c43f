package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/test/atolltest"
)

// library is a client library whose runner is a program.
type library struct {
	name   string
	runner string // its file; a library that has none yet is left out
	// command is the program for the scenarios of a folder, without the environment that tells it
	// of the server. It may leave files in dir.
	command func(ctx context.Context, folder, dir string) (*exec.Cmd, error)
	only    string // a regular expression of the scenarios that it runs; empty for all
}

// platform are scenarios of what a platform of JavaScript has of its own: streams, cancellations,
// connections that break, bytes up and down, sockets, hashes. The others are as under Node.js.
const platform = `^(executions|trouble|webhooks|files)/|^sandboxes/(processes|files|watch|a terminal|a command)|^contexts/interrupts|^sessions/interrupts`

// libraries run beside the one for Go.
var libraries = []library{
	{"python", "../../sdk/python/tests/scenarios.py", python("sync"), ""},
	{"python-async", "../../sdk/python/tests/scenarios.py", python("async"), ""},
	{"typescript", "../../sdk/typescript/test/scenarios.ts", typescript(node), ""},
	{"typescript-deno", "../../sdk/typescript/test/scenarios.ts", typescript(runtime("@deno/*/deno", "run", "--quiet", "--allow-all", "--no-config", "--no-lock")), platform},
	{"typescript-bun", "../../sdk/typescript/test/scenarios.ts", typescript(runtime("@oven/*/bin/bun")), platform},
}

// environment tells a runner what it needs to know.
func (p *place) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "ATOLL_BASE_URL=" + p.url, "ATOLL_API_KEY=" + p.keys["default"], "ATOLL_ADMIN_KEY=" + p.keys["admin"],
		"ATOLL_OTHER_KEY=" + p.keys["other"], "ATOLL_MODEL=" + p.model, "ATOLL_TROUBLE_URL=" + p.trouble,
		"ATOLL_SCENARIOS=" + p.folder,
	}
}

// report is a line of a runner's output.
type report struct {
	Name string
	OK   bool
	Why  string
	MS   float64
}

// told runs a library's program, and returns what it says of scenarios and what is wrong with
// that: those that failed, and those that it did not run.
func told(cmd *exec.Cmd, all []scenario) (reports []report, wrong []string) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	left := map[string]bool{}
	for _, s := range all {
		left[s.Name] = true
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil || !left[r.Name] {
			wrong = append(wrong, fmt.Sprintf("it says %.300q", lines.Text()))
			continue
		}
		delete(left, r.Name)
		if reports = append(reports, r); !r.OK {
			wrong = append(wrong, fmt.Sprintf("%s (%.0f ms): %.1000s", r.Name, r.MS, r.Why))
		}
	}
	for name := range left {
		wrong = append(wrong, name+": it was not run")
	}
	if err != nil || len(left) > 0 {
		text := errs.String()
		wrong = append(wrong, fmt.Sprintf("the program ended with %v: %s", err, text[max(0, len(text)-2000):]))
	}
	return reports, wrong
}

// pythonPackages are what the library for Python needs.
var pythonPackages = []string{"httpx==0.28.1"}

// python runs the library for Python, one of its kinds.
func python(kind string) func(ctx context.Context, folder, dir string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, _ string) (*exec.Cmd, error) {
		packages, err := kept("sdk-python-"+strings.Join(pythonPackages, "-"), func(dir string) *exec.Cmd {
			return exec.CommandContext(ctx, "python3", append([]string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:", "--target", dir}, pythonPackages...)...)
		})
		if err != nil {
			return nil, err
		}
		source, err := filepath.Abs("../../sdk/python/src")
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, "python3", "../../sdk/python/tests/scenarios.py", "--kind", kind, folder)
		cmd.Env = []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + source + string(filepath.ListSeparator) + packages}
		return cmd, nil
	}
}

// typescriptPackages bundle the library for TypeScript with its runner.
const typescriptPackages = "esbuild@0.28.2"

// typescript runs the library for TypeScript, bundled into one file, with a runtime.
func typescript(with func() ([]string, error)) func(ctx context.Context, folder, dir string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, dir string) (*exec.Cmd, error) {
		command, err := with()
		if err != nil {
			return nil, err
		}
		packages, err := bundler()
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "scenarios.mjs") // a file, since the runner may start itself again with other flags
		bundle := exec.CommandContext(ctx, filepath.Join(packages, "node_modules", ".bin", "esbuild"), "../../sdk/typescript/test/scenarios.ts", "--bundle", "--platform=node", "--format=esm", "--log-level=error", "--outfile="+file)
		if out, err := atolltest.Output(bundle); err != nil {
			return nil, fmt.Errorf("bundle the runner: %w: %s", err, out)
		}
		return exec.CommandContext(ctx, command[0], append(command[1:], file, folder)...), nil
	}
}

// bundler is the folder of typescriptPackages.
var bundler = sync.OnceValues(func() (string, error) {
	return kept("sdk-"+typescriptPackages, func(dir string) *exec.Cmd {
		return exec.Command("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", dir, typescriptPackages)
	})
})

func node() ([]string, error) { return []string{"node"}, nil }

// runtime is one of sdk/typescript/runtimes, by a pattern of where its package has the program.
func runtime(program string, flags ...string) func() ([]string, error) {
	return func() ([]string, error) {
		folder, err := runtimes()
		if err != nil {
			return nil, err
		}
		found, err := filepath.Glob(filepath.Join(folder, "node_modules", program))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("programs %s: %v, %w", program, found, err)
		}
		return append(found, flags...), nil
	}
}

// runtimes is the folder of sdk/typescript/runtimes, once they are installed.
var runtimes = sync.OnceValues(func() (string, error) {
	folder, err := filepath.Abs("../../sdk/typescript")
	if err != nil {
		return "", err
	}
	if out, err := atolltest.Output(exec.Command(filepath.Join(folder, "scripts", "install.sh"), "runtimes")); err != nil {
		return "", fmt.Errorf("install runtimes: %w: %s", err, out)
	}
	return filepath.Join(folder, "runtimes"), nil
})

// kept is a folder that is made once, and kept beside the tests' other data.
func kept(name string, install func(dir string) *exec.Cmd) (string, error) {
	image, err := atolltest.ImageDir()
	if err != nil {
		return "", err
	}
	data := filepath.Dir(filepath.Dir(image))
	dir := filepath.Join(data, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	made, err := os.MkdirTemp(data, name+"-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made) // nothing, once it has its name
	if out, err := atolltest.Output(install(made)); err != nil {
		return "", fmt.Errorf("install %s: %w: %s", name, err, out)
	}
	return dir, os.Rename(made, dir)
}
