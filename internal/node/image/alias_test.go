package image

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// shelf is a store of images that are known by their names.
type shelf map[string]*Image

func (s shelf) Get(name string) (*Image, error) {
	if img := s[name]; img != nil {
		return img, nil
	}
	return nil, fault.New(fault.NotFound, "there is no image %q", name)
}

func (s shelf) List() (all []*Image, err error) {
	for _, img := range s {
		all = append(all, img)
	}
	return all, nil
}

func TestWhatAnImageIsAskedForAs(t *testing.T) {
	aliases := &Aliases{
		Store: shelf{
			"default": {Name: "default", Interpreters: []Interpreter{{Language: execution.Python, Version: "3.14.8"}, {Language: execution.Node, Version: "24.21.0"}}},
			"tools":   {Name: "tools"},
		},
		Default: "default",
		Names:   map[string]string{"node:20": "tools", "postgres:*": "tools", "gone:1": "missing", "ghcr.io/x/y:2": "tools"},
	}
	for asked, want := range map[string]string{
		"default": "default", "tools": "tools",
		"node:22": "default", "node:24": "default", "node:24.21": "default", "node": "default", "node:lts": "default", "node:22-slim": "default", "docker.io/library/node:22": "default",
		"python:3.12": "default", "python:3.14.8": "default", "python:3": "default", "python:latest": "default", "python:3.12-slim-bookworm": "default",
		"node:20": "tools", "library/node:20": "tools", "postgres:17": "tools", "postgres": "tools", "ghcr.io/x/y:2": "tools",
	} {
		if got, err := aliases.Resolve(asked); err != nil || got != want {
			t.Errorf("%s: %q, %v", asked, got, err)
		}
	}
	for asked, says := range map[string]string{
		"node:26":                "atoll image import --name node-26 node:26",
		"node:24.22":             "no image",
		"python:2.7":             "no image",
		"python:4":               "no image",
		"python:alpine":          "no image",
		"r-base":                 `{"r-base": "r-base-latest"}`,
		"alpine/git":             "--name git-latest alpine/git",
		"ghcr.io:5000/x/y":       "no image",
		"gone:1":                 "--name missing",
		"../etc":                 "no image",
		"":                       "no image's name",
		"a;reboot":               "no image's name",
		"a b":                    "no image's name",
		"node:22\x00":            "no image's name",
		strings.Repeat("a", 300): "no image's name",
	} {
		if got, err := aliases.Resolve(asked); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %q, %v", asked, got, err)
		}
	}
}
