package image

import (
	"context"
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
		"node:26":                "'atoll image import node:26'",
		"node:24.22":             "no image",
		"python:2.7":             "no image",
		"python:4":               "no image",
		"python:alpine":          "no image",
		"r-base":                 "'atoll image import r-base'",
		"alpine/git":             "'atoll image import alpine/git'",
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

// TestVariantsByName: a variant of the default image has one name, and is made only where that is
// allowed.
func TestVariantsByName(t *testing.T) {
	made := ""
	aliases := &Aliases{Store: shelf{"default": {Name: "default"}, "default+browser": {Name: "default+browser"}}, Default: "default"}
	for asked, says := range map[string]string{
		"default+browser":        "",
		"default+office":         "'atoll image build --with office'",
		"default+office,browser": "the variants are default+browser, default+office, default+browser,office",
		"default+java":           "is not a variant of the default image",
		"default+../x":           "is not a variant of the default image",
	} {
		for what, ask := range map[string]func() (string, error){
			"Resolve": func() (string, error) { return aliases.Resolve(asked) },
			"Provide": func() (string, error) { return aliases.Provide(t.Context(), asked) },
			"NotHere": func() (string, error) {
				if says == "" {
					return asked, nil
				}
				return "", aliases.NotHere(asked, fault.New(fault.NotFound, "there is no image"))
			},
		} {
			got, err := ask()
			if says == "" && (got != asked || err != nil) || says != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says)) {
				t.Errorf("%s of %s: %q, %v", what, asked, got, err)
			}
		}
	}
	aliases.Packages = func(_ context.Context, image string) (string, error) { made = image; return image, nil }
	if got, err := aliases.Provide(t.Context(), "default+office"); got != "default+office" || err != nil || made != got {
		t.Errorf("a sandbox gets %q of %q, %v", got, made, err)
	}
	if _, err := aliases.Provide(t.Context(), "default+java"); fault.KindOf(err) != fault.Invalid || made != "default+office" {
		t.Errorf("%q was made, %v", made, err)
	}
	for name, ok := range map[string]bool{"default+browser,office": true, "default+office,browser": false, "default+": false, "x+browser": false, "default,browser": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// languages returns a store with the default image and images imported from a registry.
func languages() *Aliases {
	return &Aliases{
		Store: shelf{
			"default":     {Name: "default", Recipe: "r", Source: "debian:testing", Interpreters: []Interpreter{{Language: execution.Python, Version: "3.14.8"}, {Language: execution.Node, Version: "24.21.0"}}},
			"python-3.11": {Name: "python-3.11", Source: "python:3.11", Interpreters: []Interpreter{{Language: execution.Python, Version: "3.11.9"}}},
			"db":          {Name: "db", Source: "postgres:16", Interpreters: []Interpreter{{Language: execution.Bash, Version: "5.2"}}},
		},
		Default: "default",
		Names:   map[string]string{"python:3.9": "default", "node:18": "db"},
	}
}

func TestAnImageThatWasImportedComesBeforeALaterVersion(t *testing.T) {
	aliases := languages()
	for asked, want := range map[string]string{
		"python:3.11": "python-3.11", "docker.io/library/python:3.11": "python-3.11", "postgres:16": "db", "docker.io/library/postgres:16": "db",
		"python:3.14": "default", "python:3": "default", "python:3.10": "default", "python:3.11-slim": "default",
	} {
		if got, err := aliases.Resolve(asked); err != nil || got != want {
			t.Errorf("%s: %q, %v, not %q", asked, got, err, want)
		}
	}
	for _, asked := range []string{"postgres:17", "ubuntu:20.04", "debian:testing", "someone/python:3.10", "python:2"} {
		if got, err := aliases.Resolve(asked); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %q, %v", asked, got, err)
		}
	}
}

func TestAnotherVersionThanWasAskedForIsSaid(t *testing.T) {
	aliases := languages()
	for asked, says := range map[string]string{
		"python:3.10":        `runs this server's image "default" with Python 3.14.8. To get the requested version, ask the operator to run 'atoll image import python:3.10'`,
		"python:3.11-slim":   "with Python 3.14.8",
		"node:18":            "which has no Node.js",
		"node:20":            "with Node.js 24.21.0",
		"python:3.9":         "with Python 3.14.8",
		"python:3.14.8":      "",
		"python:3.14-slim":   "",
		"python":             "",
		"node:lts":           "",
		"python:3.14-alpine": "with Python 3.14.8 on another system than alpine",
		"python:3.11":        "",
		"postgres:16":        "",
		"default":            "",
	} {
		name, err := aliases.Resolve(asked)
		if err != nil {
			t.Fatalf("%s: %v", asked, err)
		}
		if got := aliases.Warning(asked, name); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %q, without %q", asked, got, says)
		}
		// The operator's table accepts the other version.
		exact := aliases.Exact(asked, name)
		if refuse := says != "" && asked != "python:3.9" && asked != "node:18"; refuse != (fault.KindOf(exact) == fault.Invalid) {
			t.Errorf("%s, exactly: %v", asked, exact)
		}
	}
}

func TestAnImageThatIsNotHereIsSaidToBeAnother(t *testing.T) {
	aliases := languages()
	for asked, says := range map[string]string{
		"python:3.10": `the image "default" has Python 3.14.8, Node.js 24.21.0. Run 'atoll image import python:3.10'`,
		"python:3.11": `is called "python-3.11" here`,
		"python:3.14": `is called "default" here`,
		"postgres:17": "run 'atoll image import postgres:17'",
		"nowhere":     "import it with 'atoll image import'",
		"../default":  "is not allowed",
	} {
		_, missing := aliases.Store.Get(asked)
		if CheckName(asked) != nil {
			missing = CheckName(asked)
		}
		if err := aliases.NotHere(asked, missing); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, without %q", asked, err, says)
		}
	}
}
