package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// maxModels bounds the models of one file.
const maxModels = 1000

// declared is a model of a file, with what its key is read from.
type declared struct {
	model.Record
	line            int
	keyFile, keyEnv string
}

// parser reads the nodes of one file, and collects everything that is wrong.
type parser struct {
	path string
	bad  []error
}

func (p *parser) refuse(n *yaml.Node, field, format string, args ...any) {
	p.bad = append(p.bad, fmt.Errorf("%s, line %d: %s: %s", p.path, n.Line, field, fmt.Sprintf(format, args...)))
}

// parse reads the text of a file. The error lists everything that is wrong, each with its
// line and the path of its field, such as models[1].prices.input.
func parse(path string, text []byte) ([]declared, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var root, more yaml.Node
	if err := d.Decode(&root); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: models: is required; an empty list, [], declares none", path)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: must be one YAML document", path)
	}
	p := &parser{path: path}
	var out []declared
	p.object(root.Content[0], "", []string{"models"}, map[string]func(*yaml.Node, string){
		"models": func(n *yaml.Node, field string) {
			p.list(n, field, maxModels, func(n *yaml.Node, field string) { out = append(out, p.entry(n, field)) })
		},
	})
	first := map[string]int{}
	for i, m := range out {
		if before, twice := first[m.Name]; twice && m.Name != "" {
			p.bad = append(p.bad, fmt.Errorf("%s, line %d: models[%d].name: %s is also the name of models[%d]", path, m.line, i, m.Name, before))
		} else {
			first[m.Name] = i
		}
	}
	if len(p.bad) > 0 {
		return nil, errors.Join(p.bad...)
	}
	return out, nil
}

// resolved is what an alias stands for. Aliases may be circular; the parser goes only as
// deep as the fields do.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// object reads the fields of a mapping; field is its path, "" for the whole.
func (p *parser) object(n *yaml.Node, field string, required []string, fields map[string]func(*yaml.Node, string)) {
	n = resolved(n)
	name := field
	if name == "" {
		name = "the file"
	} else {
		field += "."
	}
	if n.Kind != yaml.MappingNode {
		p.refuse(n, name, "must have fields")
		return
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read := fields[key.Value]
		switch {
		case read == nil || key.Kind != yaml.ScalarNode:
			p.refuse(key, field+shown(key.Value), "unknown field")
		case slices.Contains(seen, key.Value):
			p.refuse(key, field+key.Value, "is there twice")
		default:
			seen = append(seen, key.Value)
			read(value, field+key.Value)
		}
	}
	for _, f := range required {
		if !slices.Contains(seen, f) {
			p.refuse(n, field+f, "is required")
		}
	}
}

// shown is a name of the file's author that is fit for a message.
func shown(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	if quoted := fmt.Sprintf("%q", name); strings.Trim(quoted, `"`) != name {
		return quoted
	}
	return name
}

func (p *parser) list(n *yaml.Node, field string, most int, each func(*yaml.Node, string)) {
	n = resolved(n)
	if n.Kind != yaml.SequenceNode {
		p.refuse(n, field, "must be a list")
		return
	}
	if len(n.Content) > most {
		p.refuse(n, field, "has more than %d entries", most)
		return
	}
	for i, one := range n.Content {
		each(one, fmt.Sprintf("%s[%d]", field, i))
	}
}

// text reads a single value as it is written.
func (p *parser) text(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = resolved(n)
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
			p.refuse(n, field, "must be a text, not empty")
			return
		}
		*to = n.Value
	}
}

func (p *parser) number(to *int) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = resolved(n)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(to) != nil {
			p.refuse(n, field, "must be a whole number")
		}
	}
}

func (p *parser) price(to *model.Price) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		var text string
		p.text(&text)(n, field)
		if text == "" {
			return
		}
		var err error
		if *to, err = model.ParsePrice(text); err != nil {
			p.refuse(n, field, "%v", err)
		}
	}
}

// entry reads a model.
func (p *parser) entry(n *yaml.Node, field string) declared {
	m := declared{line: n.Line, Record: model.Record{AllTenants: true, Source: p.path, Spec: model.Spec{Capabilities: model.DefaultCapabilities}}}
	var provider string
	before := len(p.bad)
	p.object(n, field, []string{"name", "provider"}, map[string]func(*yaml.Node, string){
		"name": p.text(&m.Name), "provider": p.text(&provider), "upstream": p.text(&m.Upstream), "base_url": p.text(&m.BaseURL),
		"key_file": p.text(&m.keyFile), "key_env": p.text(&m.keyEnv), "context": p.number(&m.Context), "max_output": p.number(&m.MaxOutput),
		"key": func(n *yaml.Node, field string) {
			p.refuse(n, field, "is not written into this file: name a file with key_file, or a variable of the server's environment with key_env")
		},
		"prices": func(n *yaml.Node, field string) {
			p.object(n, field, nil, map[string]func(*yaml.Node, string){
				"input": p.price(&m.Prices.Input), "output": p.price(&m.Prices.Output), "cache_read": p.price(&m.Prices.CacheRead), "cache_write": p.price(&m.Prices.CacheWrite),
			})
		},
		"capabilities": func(n *yaml.Node, field string) {
			var given []model.Capability
			p.list(n, field, len(model.Capabilities), func(n *yaml.Node, field string) {
				var c string
				p.text(&c)(n, field)
				given = append(given, model.Capability(c))
			})
			var err error
			if m.Capabilities, err = model.CapabilitiesOf(given); err != nil {
				p.refuse(n, field, "%v", err)
			}
		},
		"plans": func(n *yaml.Node, field string) {
			m.AllTenants = false
			p.list(n, field, model.MaxPlans, func(n *yaml.Node, field string) {
				var plan string
				if p.text(&plan)(n, field); plan != "" && !tenant.Name.MatchString(plan) {
					p.refuse(n, field, "%s is not the name of a plan", shown(plan))
				}
				m.Plans = append(m.Plans, plan)
			})
		},
		"tenants": func(n *yaml.Node, field string) {
			m.AllTenants = false
			p.list(n, field, model.MaxTenants, func(n *yaml.Node, field string) {
				var t string
				if p.text(&t)(n, field); t != "" && !tenant.Name.MatchString(t) {
					p.refuse(n, field, "%s is neither the name nor the id of a tenant", shown(t))
				}
				m.Tenants = append(m.Tenants, t)
			})
		},
	})
	if len(p.bad) > before {
		return m // what follows from it says nothing new
	}
	if m.keyFile != "" && m.keyEnv != "" {
		p.refuse(n, field+".key_env", "give either key_file or key_env")
	}
	m.Provider = model.Provider(provider)
	if m.Upstream == "" {
		m.Upstream = m.Name
	}
	if m.BaseURL == "" {
		m.BaseURL = m.Provider.DefaultURL()
	}
	sum := sha256.Sum256([]byte("declared model " + m.Name))
	m.ID = "mdl_" + hex.EncodeToString(sum[:8]) // the same in every server of the installation
	if _, err := m.Validate(); err != nil {
		p.refuse(n, field, "%v", err)
	}
	return m
}
