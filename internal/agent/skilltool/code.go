package skilltool

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Code is the name of the skill.
const Code = "code-execution"

var coding = builtIn{
	Definition:   skill.Definition{Name: Code, Needs: skill.AnySandbox, Check: checkConfig[codeConfig]},
	instructions: instruct(codeInstructions),
	check:        checkCode,
}

// codeConfig is the configuration of the skill. Omitted fields use their defaults.
type codeConfig struct {
	MaxAttempts *wire.Whole `json:"max_attempts,omitzero" minimum:"1" maximum:"10" default:"3"`
}

func (c *codeConfig) check(path string) error {
	return whole(path+".max_attempts", c.MaxAttempts, 1, 10)
}

func codeInstructions(cfg *codeConfig, t *turn) string {
	return fmt.Sprintf("Solve what can be computed by running code with %s, and not in your head. Check the output of each program. When one fails, find out why, fix it and run it again, up to %.0f times.", t.code, *cfg.MaxAttempts)
}

// checkCode has a run go on whose last program failed, as long as the skill's bound says.
func checkCode(_ context.Context, c *loop.Check) (*run.Checked, error) {
	cfg, err := configOf[codeConfig](c.State.Request.Skill(Code).Config)
	if err != nil {
		return nil, err
	}
	failures, last := 0, false
	for _, m := range made(c.State) {
		if m.Name == sandboxtool.RunCode || m.Name == pooltool.ExecCode {
			if last = m.failed; last {
				failures++
			}
		}
	}
	n := reminders(c.State, Code)
	if !last || failures <= n || n >= int(*cfg.MaxAttempts) {
		return nil, nil
	}
	return remind(Code, "The last program that you ran failed. Read its output, fix it, and run it again. If you cannot fix it, tell the user what fails and why.")
}
