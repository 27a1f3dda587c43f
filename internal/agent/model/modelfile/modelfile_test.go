package modelfile

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// folder is a folder with files, and a File's configuration for its models.yaml.
type folder struct {
	t    *testing.T
	dir  string
	said bytes.Buffer
	now  time.Time
}

func newFolder(t *testing.T) *folder { return &folder{t: t, dir: t.TempDir(), now: time.Now()} }

// write puts a file in place, as something other than what was there.
func (f *folder) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) config() Config {
	return Config{
		Path: filepath.Join(f.dir, "models.yaml"), Log: slog.New(slog.NewTextHandler(&f.said, nil)),
		Getenv: func(name string) string {
			return map[string]string{"PROVIDER_KEY": "sk-of-env", "BAD_KEY": "sk of env"}[name]
		},
		Check: func(base *url.URL) error {
			if base.Hostname() == "10.0.0.1" {
				return errors.New("base_url must not lead to a private address")
			}
			return nil
		},
	}
}

// open opens the file, with a clock that later moves.
func (f *folder) open() *File {
	f.t.Helper()
	out, err := Open(f.config())
	if err != nil {
		f.t.Fatal(err)
	}
	out.now = func() time.Time { return f.now }
	return out
}

func (f *folder) later() { f.now = f.now.Add(2 * every) }

const whole = `# of the team
models:
  - name: acme/large
    provider: openai
    upstream: large-2026
    base_url: https://provider.example/v1
    key_file: provider.key
    prices: {input: 2.50, output: "10", cache_read: 0.25, cache_write: 3}
    context: 200_000
    max_output: 32000
    capabilities: [tools, vision]
    tenants: [acme, ten_0123456789abcdef]
    plans: [pro]
  - name: small
    provider: anthropic
    key_env: PROVIDER_KEY
`

func TestModels(t *testing.T) {
	f := newFolder(t)
	f.write("models.yaml", whole)
	f.write("provider.key", "sk-of-file\n")
	got := f.open().Models()
	path := filepath.Join(f.dir, "models.yaml")
	for i := range got {
		if !strings.HasPrefix(got[i].ID, "mdl_") || len(got[i].ID) != 20 || time.Since(got[i].CreatedAt) > time.Hour || !got[i].UpdatedAt.Equal(got[i].CreatedAt) {
			t.Errorf("it is %+v", got[i])
		}
		got[i].ID, got[i].CreatedAt, got[i].UpdatedAt = "", time.Time{}, time.Time{}
	}
	want := []model.Record{
		{
			Name: "acme/large", Provider: "openai", Upstream: "large-2026", BaseURL: "https://provider.example/v1", Key: "sk-of-file", Source: path,
			Spec: model.Spec{
				Prices:  model.Prices{Input: 2_500_000, Output: 10_000_000, CacheRead: 250_000, CacheWrite: 3_000_000},
				Context: 200_000, MaxOutput: 32_000, Capabilities: []model.Capability{model.Vision, model.Tools},
			},
			Tenants: []tenant.ID{"acme", "ten_0123456789abcdef"}, Plans: []string{"pro"},
		},
		{Name: "small", Provider: "anthropic", Upstream: "small", BaseURL: "https://api.anthropic.com", Key: "sk-of-env", Source: path, Spec: model.Spec{Capabilities: model.DefaultCapabilities}, AllTenants: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestRefused has everything wrong named by its line and field, and no key in a message.
func TestRefused(t *testing.T) {
	f := newFolder(t)
	f.write("empty.key", "\n")
	f.write("long.key", strings.Repeat("k", 3*model.MaxKey))
	one := func(rest string) string { return "models:\n  - {name: a, provider: openai" + rest + "}\n" }
	for text, want := range map[string]string{
		"":                                              "models: is required",
		"# nothing\n":                                   "models: is required",
		"null":                                          "line 1: the file: must have fields",
		"{}":                                            "line 1: models: is required",
		"models: []\n---\nmodels: []":                   "must be one YAML document",
		"models: {":                                     "did not find expected",
		"models:\n  a: b":                               "line 2: models: must be a list",
		"models: []\nmore: 1":                           "line 2: more: unknown field",
		"models: []\n\"a\\nb\": 1":                      `line 2: "a\nb": unknown field`,
		"models: []\nmodels: []":                        "line 2: models: is there twice",
		"models:\n  - small":                            "line 2: models[0]: must have fields",
		"models:\n  - {name: a}":                        "line 2: models[0].provider: is required",
		one(", prices: {input: 1e3}"):                   `line 2: models[0].prices.input: "1e3" is not a price`,
		one(", prices: {}, price: 1"):                   "models[0].price: unknown field",
		one(", prices: {in: 1}"):                        "models[0].prices.in: unknown field",
		one(", prices: 3"):                              "models[0].prices: must have fields",
		one(", context: much"):                          "models[0].context: must be a whole number",
		one(", context: 1.5"):                           "models[0].context: must be a whole number",
		one(", max_output: -1"):                         "models[0]: max_output must be 0",
		one(", capabilities: [fly]"):                    "models[0].capabilities: capabilities must be from",
		one(", capabilities: tools"):                    "models[0].capabilities: must be a list",
		one(", tenants: [a/b]"):                         "models[0].tenants[0]: a/b is neither",
		one(", tenants: [[]]"):                          "models[0].tenants[0]: must be a text",
		one(", tenants: "):                              "models[0].tenants: must be a list",
		one(", upstream: "):                             "models[0].upstream: must be a text",
		one(", key: sk-plain"):                          "models[0].key: is not written into this file",
		one(", key_env: NONE"):                          "models[0]: key_env: the server's environment has no NONE",
		one(", key_env: BAD_KEY"):                       "models[0]: key must be at most",
		one(", key_file: none.key"):                     "no such file",
		one(", key_file: empty.key"):                    "empty.key is empty",
		one(", key_file: long.key"):                     "long.key has more than",
		one(", key_file: ."):                            "is not a regular file",
		one(", key_file: a, key_env: B"):                "models[0].key_env: give either",
		one(", base_url: 'ftp://a'"):                    "models[0]: base_url must be an http or https URL",
		one(", base_url: 'https://10.0.0.1'"):           "models[0]: base_url must not lead to a private address",
		"models:\n  - {name: a, provider: openai-chat}": "models[0]: base_url is required",
		"models:\n  - {name: a, provider: none}":        "models[0]: provider must be one of",
		"models:\n  - {name: a//b, provider: openai}":   "models[0]: name must have",
		"models:\n  - {name: mdl_0123456789abcdef, provider: openai}":                    "not look like an id",
		"models:\n  - {name: a, provider: openai}\n  - {name: a, provider: anthropic}\n": "line 3: models[1].name: a is also the name of models[0]",
		"models: &a\n  - *a\n":                         "models[0]: must have fields",
		"models: [" + strings.Repeat("a,", 1001) + "]": "models: has more than 1000 entries",
		"a: &a {name: x}\nmodels: [*a]":                "models[0].provider: is required",
	} {
		f.write("models.yaml", text)
		_, err := Open(f.config())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "models.yaml") {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		} else if strings.Contains(err.Error(), "sk-") || strings.Contains(err.Error(), "sk of env") {
			t.Errorf("the key is in %v", err)
		}
	}
	f.write("models.yaml", "models:\n  - {name: a//b, provider: openai}\n  - {name: b, provider: openai, context: x}\n")
	if _, err := Open(f.config()); err == nil || !strings.Contains(err.Error(), "models[0]") || !strings.Contains(err.Error(), "models[1].context") {
		t.Errorf("of two mistakes it says %v", err)
	}
	f.write("models.yaml", strings.Repeat("#\n", maxFile/2+1))
	if _, err := Open(f.config()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("of a file too long it says %v", err)
	}
	none := f.config()
	none.Path = filepath.Join(f.dir, "none.yaml")
	if _, err := Open(none); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("of no file it says %v", err)
	}
}

// TestChanged has a file that changes read again, also when only a key does; what cannot be
// used is told once, and changes nothing.
func TestChanged(t *testing.T) {
	f := newFolder(t)
	f.write("models.yaml", "models:\n  - {name: a, provider: openai, key_file: provider.key}\n")
	f.write("provider.key", "sk-one")
	m := f.open()
	is := func(what, name, key string) {
		t.Helper()
		if got := m.Models(); len(got) != 1 || got[0].Name != name || got[0].Key != key {
			t.Errorf("%s: %+v", what, got)
		}
	}
	is("at first", "a", "sk-one")
	f.write("provider.key", "sk-two")
	is("within a second", "a", "sk-one")
	f.later()
	is("another key", "a", "sk-two")

	f.write("models.yaml", "models: [")
	for range 3 {
		f.later()
		is("half of a file", "a", "sk-two")
	}
	if n := strings.Count(f.said.String(), "cannot use"); n != 1 {
		t.Errorf("it was said %d times: %s", n, &f.said)
	}
	f.write("models.yaml", "models:\n  - {name: b, provider: openai, key_file: other.key}\n")
	f.later()
	is("a key that is not there", "a", "sk-two")
	f.write("other.key", "sk-three")
	f.later()
	is("the key's file comes", "b", "sk-three")

	if err := os.Remove(filepath.Join(f.dir, "models.yaml")); err != nil {
		t.Fatal(err)
	}
	f.later()
	is("no file", "b", "sk-three")
	f.write("models.yaml", "models: []")
	f.later()
	if got := m.Models(); len(got) != 0 {
		t.Errorf("none are declared: %+v", got)
	}
	if strings.Contains(f.said.String(), "sk-") {
		t.Errorf("a key was logged: %s", &f.said)
	}
}

// FuzzParse reads anything as a file: what is taken is valid.
func FuzzParse(f *testing.F) {
	for _, text := range []string{whole, "", "models: &a [*a]", "models:\n- &m {name: a, provider: openai}\n- *m", "? [a]\n: b", "models: [{<<: {name: a}}]", "\x00", "--- !!binary x"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse("models.yaml", text)
		if err != nil && (all != nil || !strings.Contains(err.Error(), "models.yaml")) {
			t.Fatalf("%v with %v", err, all)
		}
		for i := range all {
			if _, err := all[i].Validate(); err != nil || all[i].Key != "" || all[i].Source != "models.yaml" {
				t.Fatalf("%+v: %v", all[i], err)
			}
		}
	})
}
