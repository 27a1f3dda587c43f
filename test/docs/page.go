package docs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// elsewhere are the reasons why a block is not run, each with what it stands for and,
// where there is one, the test that does the same.
var elsewhere = map[string]string{
	"bucket":     "needs a bucket of a cloud provider; internal/infra/blob and internal/node/volumes/bucket use a server of their own",
	"builder":    "needs buildah and a registry",
	"host":       "names a host that only the reader has",
	"minutes":    "takes minutes; CI builds and tests by the same commands",
	"provider":   "needs a provider of models; cmd/atoll's tests run these commands against a server that speaks the protocols",
	"postgresql": "needs two PostgreSQL servers; the commands of Atoll in it run in cmd/atoll's tests",
	"registry":   "needs a registry or a mirror; internal/node/image imports from each kind of source",
	"release":    "needs a release's files; test/install makes and installs them",
}

// languages are those of blocks; sh, bash and console are run.
var languages = []string{"sh", "bash", "console", "text", "json", "yaml", "ini", "python", "py", "ts", "typescript", "go", "js", "sql", "nginx", "dockerfile", "xml", "toml", "http"}

// kind is how a step is run.
type kind string

const (
	script     kind = "script"
	background kind = "background"
	fails      kind = "fails"
	terminal   kind = "terminal"
)

// step is something to run.
type step struct {
	line   int // of the page
	kind   kind
	text   string
	prints []string // lines; nil for anything
	unseen bool
}

// page is a page of documentation.
type page struct {
	name   string
	server bool
	steps  []step
	left   []string // blocks that are not run, and why
}

var (
	fence     = regexp.MustCompile("^( *)```(\\S*)\\s*$")
	directive = regexp.MustCompile(`^<!-- test: ([a-z]+)(?: ([^\n]*?))?\s*-->$`)
	setup     = "<!-- test: setup"
)

// read reads a page.
func read(path string) (*page, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &page{name: path}
	return p, p.parse(strings.Split(string(data), "\n"))
}

func (p *page) parse(lines []string) error {
	next := script
	var skip string
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch m := directive.FindStringSubmatch(line); {
		case strings.HasPrefix(line, setup):
			end := slices.IndexFunc(lines[i:], func(l string) bool { return strings.HasSuffix(l, "-->") })
			if end < 0 {
				return fmt.Errorf("%s:%d: a setup without an end", p.name, i+1)
			}
			text := strings.TrimSuffix(strings.TrimPrefix(strings.Join(lines[i:i+end+1], "\n"), setup), "-->")
			p.steps = append(p.steps, step{line: i + 1, kind: script, text: text, unseen: true})
			i += end
			continue
		case m == nil:
		case m[1] == "server":
			p.server = true
			continue
		case m[1] == "elsewhere":
			if elsewhere[m[2]] == "" {
				return fmt.Errorf("%s:%d: %q is no reason not to run a block", p.name, i+1, m[2])
			}
			skip = m[2]
			continue
		case slices.Contains([]kind{background, fails, terminal}, kind(m[1])):
			next = kind(m[1])
			continue
		default:
			return fmt.Errorf("%s:%d: there is no directive %q", p.name, i+1, m[1])
		}
		m := fence.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		begin := i + 1
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
		}
		if i == len(lines) {
			return fmt.Errorf("%s:%d: a block without an end", p.name, begin)
		}
		body := lines[begin:i]
		for j := range body {
			body[j] = strings.TrimPrefix(body[j], m[1])
		}
		switch {
		case !slices.Contains(languages, m[2]):
			return fmt.Errorf("%s:%d: a block of %q: is it to be run (sh, console) or not (%s)?", p.name, begin, m[2], strings.Join(languages, ", "))
		case m[2] != "sh" && m[2] != "console" && m[2] != "bash":
			continue // no command
		case skip != "":
			p.left = append(p.left, fmt.Sprintf("%s:%d: %s", p.name, begin, elsewhere[skip]))
		case m[2] == "console":
			steps, err := p.console(body, begin, next)
			if err != nil {
				return err
			}
			p.steps = append(p.steps, steps...)
		case strings.HasPrefix(body[0], "$ "):
			return fmt.Errorf("%s:%d: a block with \"$ \" is console, not %s", p.name, begin, m[2])
		default:
			p.steps = append(p.steps, step{line: begin, kind: next, text: strings.Join(body, "\n")})
		}
		next, skip = script, ""
	}
	return nil
}

// console cuts a block into commands and what they print.
func (p *page) console(body []string, begin int, k kind) ([]step, error) {
	var steps []step
	for i, line := range body {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{line: begin + i + 1, kind: k, text: command, prints: []string{}})
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%s:%d: output ahead of the first command, which begins with \"$ \"", p.name, begin+i+1)
		}
		last := &steps[len(steps)-1]
		if len(last.prints) == 0 && (strings.HasSuffix(last.text, `\`) || open(last.text)) {
			last.text += "\n" + strings.TrimPrefix(line, "> ")
			continue
		}
		last.prints = append(last.prints, line)
	}
	for i := range steps {
		if s := &steps[i]; len(s.prints) == 0 || slices.Equal(s.prints, []string{""}) {
			s.prints = nil // the page does not show it
		}
	}
	return steps, nil
}

// open reports whether a command goes on in the next line, because a quote is open.
func open(text string) bool { return strings.Count(text, "'")%2 == 1 }
