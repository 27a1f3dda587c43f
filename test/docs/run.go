package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// result is what came of a step.
type result struct {
	step
	output string
	status int
	ran    bool
}

const (
	begins = "@@begin "
	ended  = "@@end "
)

// pageTime bounds the run of a page.
const pageTime = 5 * time.Minute

// run runs the steps of a page in dir, which is empty, and returns what came of each,
// and what the shell wrote that belongs to none.
func (p *page) run(ctx context.Context, root, dir string) ([]result, string, error) {
	if err := furnish(root, dir); err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "page.sh")
	if err := os.WriteFile(file, []byte(p.script()), 0o700); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", filepath.Join(dir, "enter.sh"))
	cmd.Dir = filepath.Join(dir, "work")
	cmd.Env = []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "LANG=C.UTF-8", "TERM=xterm",
		"ATOLL_IMAGE=" + atolltest.Image, "ATOLL_POOL_SIZE=1", "ROOT=" + root, "TOP=" + dir,
	}
	if p.server {
		cmd.Env = append(cmd.Env, "SERVER=yes")
	}
	for _, name := range []string{"GOPROXY", "GOFLAGS", "GOCACHE", "GOMODCACHE", "GOPATH"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("the page took longer than %s", pageTime)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = nil // the failing step says so
	}
	results, rest := p.collect(out.String())
	return results, rest, err
}

// script is the page as one shell script, which stops at the first step that fails.
func (p *page) script() string {
	var b strings.Builder
	b.WriteString("set -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	for i, s := range p.steps {
		body := s.text
		switch s.kind {
		case background:
			body = "{ " + body + "\n} >\"$TOP/background." + strconv.Itoa(i) + "\" 2>&1 &\nawait_server"
		case terminal:
			body = fmt.Sprintf("printf 'exit\\n' | script -qec %s /dev/null", quote(body))
		case fails:
			body = "( set -e\n" + body + "\n) && { echo 'the block was to fail'; exit 1; }; true"
		}
		// One shell for all of the page: what a block exports is there for the next.
		fmt.Fprintf(&b, "echo '%s%d'\nset -e\n%s\nset +e\necho '%s%d 0'\n", begins, i, body, ended, i)
	}
	return b.String()
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var mark = regexp.MustCompile(`(?m)^@@(begin|end) (\d+)(?: (\d+))?\r?$`)

// collect cuts what the shell wrote into the outputs of steps.
func (p *page) collect(text string) (results []result, rest string) {
	results = make([]result, len(p.steps))
	for i, s := range p.steps {
		results[i] = result{step: s, status: -1}
	}
	marks := mark.FindAllStringSubmatchIndex(text, -1)
	for n, m := range marks {
		i, _ := strconv.Atoi(text[m[4]:m[5]])
		if text[m[2]:m[3]] == "end" {
			results[i].status = 0
			continue
		}
		until := len(text)
		if n+1 < len(marks) {
			until = marks[n+1][0]
		}
		results[i].ran, results[i].output = true, strings.TrimPrefix(text[m[1]:until], "\n")
	}
	if len(marks) == 0 {
		return results, text
	}
	return results, text[:marks[0][0]]
}

// furnish makes what a page's shell finds: programs on the PATH, a checkout's folders,
// and what stands for parts of a machine that only an installation has.
func furnish(root, dir string) error {
	for _, name := range []string{"bin", "home", "work", "etc", "lib", "units", "backups"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"bin/atoll":     filepath.Join(root, "bin/atoll"),
		"work/bin":      filepath.Join(root, "bin"),
		"work/examples": filepath.Join(root, "examples"),
		"work/deploy":   filepath.Join(root, "deploy"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	images, err := atolltest.ImageDir()
	if err != nil {
		return err
	}
	for _, data := range []string{"work/data", "lib"} {
		if err := os.MkdirAll(filepath.Join(dir, data, "images"), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(images, filepath.Join(dir, data, "images", atolltest.Image)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"enter.sh": enter, "bin/systemctl": systemctl, "bin/journalctl": journalctl} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	return nil
}
