package skilltool

import (
	"context"
	"encoding/json"
	"math"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// builtIns lists the built-in skills. Each has its own file. Their checks run in this order.
var builtIns = []builtIn{planning, coding, longState, reflection, filing, browsing}

// builtIn is a built-in skill.
type builtIn struct {
	skill.Definition
	// instructions returns the text of the skill for the model.
	instructions func(config json.RawMessage, t *turn) (string, error)
	tools        []tool
	programs     []*sandboxtool.ProgramTool // tools that run in the sandbox
	class        agent.Class                // effects of programs
	// omits reports whether a configuration disables one of programs; nil if none does.
	omits func(config json.RawMessage, tool string) (bool, error)
	// check implements Skills.Check for the skill; nil for a skill without a check.
	check func(ctx context.Context, c *loop.Check) (*run.Checked, error)
}

// turn is the part of a turn that instructions describe.
type turn struct {
	state *Document // the session's state document; nil for none
	code  string    // name of the tool that runs code
}

func init() {
	for i := range builtIns {
		b := &builtIns[i]
		for _, t := range b.tools {
			b.Tools = append(b.Tools, t.Name)
		}
		for _, t := range b.programs {
			b.Tools = append(b.Tools, t.Name)
			agent.RegisterTool(t.Name, b.class)
		}
		skill.Register(b.Definition)
	}
}

func builtInNamed(name string) *builtIn {
	for i := range builtIns {
		if builtIns[i].Name == name {
			return &builtIns[i]
		}
	}
	return nil
}

// Programs returns the tools of all built-in skills that run in the sandbox.
func Programs() (all []*sandboxtool.ProgramTool) {
	for i := range builtIns {
		all = append(all, builtIns[i].programs...)
	}
	return all
}

// offered returns the tools of b that run in the sandbox, with a configuration.
func (b *builtIn) offered(config json.RawMessage) (all []run.Tool, err error) {
	for _, t := range b.programs {
		if b.omits != nil {
			if omitted, err := b.omits(config, t.Name); err != nil {
				return nil, err
			} else if omitted {
				continue
			}
		}
		all = append(all, t.Tool())
	}
	return all, nil
}

// configs decodes configurations and applies defaults.
var configs = wire.Decoder{Noun: "it", Arguments: true}

// configOf decodes a valid configuration.
func configOf[C any](text json.RawMessage) (c C, err error) {
	err = configs.Decode(text, &c)
	return c, err
}

// checkConfig validates a configuration of the type C.
func checkConfig[C any, P interface {
	*C
	check(path string) error
}](path string, text json.RawMessage) error {
	c := P(new(C))
	if err := configs.Decode(text, c); err != nil {
		return fault.Wrap(fault.Invalid, err, path+": "+err.Error())
	}
	return c.check(path)
}

// instruct decodes the configuration for a text.
func instruct[C any](text func(cfg *C, t *turn) string) func(json.RawMessage, *turn) (string, error) {
	return func(config json.RawMessage, t *turn) (string, error) {
		cfg, err := configOf[C](config)
		if err != nil {
			return "", err
		}
		return text(&cfg, t), nil
	}
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

func whole(path string, n *wire.Whole, least, most wire.Whole) error {
	if n != nil && (*n < least || *n > most || float64(*n) != math.Trunc(float64(*n))) {
		return invalid("%s must be a whole number between %.0f and %.0f", path, least, most)
	}
	return nil
}
