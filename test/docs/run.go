package docs

import (
	"bytes"
	"context"
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

// machineTime bounds the run of all pages of a machine.
const machineTime = 5 * time.Minute

// machine is a machine of its own, as far as addresses and paths go, on which pages are
// run one after the other.
type machine struct {
	root   string // of the sources
	dir    string // empty at first
	server bool   // start a server before the first page
	pages  []*page
}

// run runs the pages and returns what came of each step of each page, and what was
// written that belongs to none.
func (m *machine) run(ctx context.Context) (map[*page][]result, string, error) {
	if err := m.furnish(); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, machineTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", filepath.Join(m.dir, "enter.sh"))
	cmd.Dir = m.dir
	cmd.Env = []string{
		"PATH=" + filepath.Join(m.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(m.dir, "home"), "LANG=C.UTF-8", "TERM=xterm",
		"ATOLL_IMAGE=" + atolltest.Image, "ATOLL_POOL_SIZE=1", "ATOLL_ON_EXIT=destroy", "ROOT=" + m.root, "TOP=" + m.dir,
	}
	if m.server {
		cmd.Env = append(cmd.Env, "SERVER=yes")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("the pages took longer than %s", machineTime)
	}
	results := make(map[*page][]result)
	for i, p := range m.pages {
		text, _ := os.ReadFile(filepath.Join(m.page(i), ".output")) // missing when it was not reached
		var rest string
		results[p], rest = p.collect(string(text))
		out.WriteString(rest)
	}
	return results, out.String(), err
}

func (m *machine) page(i int) string { return filepath.Join(m.dir, "pages", fmt.Sprintf("%02d", i)) }

// script is the page as one shell script, which stops at the first step that fails.
func (p *page) script() string {
	var b strings.Builder
	b.WriteString("set -o pipefail\ntrap end_background EXIT\n")
	for i, s := range p.steps {
		body := s.text
		switch s.kind {
		case background:
			body = "set -m\n{ " + body + "\n} >\"$TOP/server.log\" 2>&1 &\nbackground=$!\nset +m\nawait_server"
		case terminal:
			body = fmt.Sprintf("printf 'exit\\n' | script -qec %s /dev/null", quote(body))
		case fails:
			body = "( set -e\n" + body + "\n) && { echo 'the block was to fail'; exit 1; }; true"
		}
		// One shell for all of the page: what a block exports is there for the next.
		fmt.Fprintf(&b, "echo '%s%d'\nset -e\n%s\nset +e\nprintf '\\n%s%d 0\\n'\n", begins, i, body, ended, i)
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

// furnish makes what pages find: programs on the PATH, a checkout's folders, and what
// stands for parts of a machine that only an installation has.
func (m *machine) furnish() error {
	images, err := atolltest.ImageDir()
	if err != nil {
		return err
	}
	for _, name := range []string{"bin", "home", "etc", "lib/atoll", "units"} {
		if err := os.MkdirAll(filepath.Join(m.dir, name), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{
		"home/.curlrc": "fail-with-body\n", // an answer that is an error fails the step
		"enter.sh":     enter, "bin/systemctl": systemctl, "bin/journalctl": journalctl,
	}
	links := map[string]string{"bin/atoll": filepath.Join(m.root, "bin/atoll"), "lib/atoll/images/" + atolltest.Image: images}
	for i, p := range m.pages {
		dir := filepath.Join("pages", filepath.Base(m.page(i)))
		files[filepath.Join(dir, ".page.sh")] = p.script()
		for _, name := range []string{"bin", "examples", "deploy"} {
			links[filepath.Join(dir, name)] = filepath.Join(m.root, name)
		}
		links[filepath.Join(dir, "data/images", atolltest.Image)] = images
	}
	for name, text := range files {
		if err := put(filepath.Join(m.dir, name), func(path string) error { return os.WriteFile(path, []byte(text), 0o700) }); err != nil {
			return err
		}
	}
	for name, target := range links {
		if err := put(filepath.Join(m.dir, name), func(path string) error { return os.Symlink(target, path) }); err != nil {
			return err
		}
	}
	return nil
}

// put makes a file, and its folder first.
func put(path string, write func(string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return write(path)
}
