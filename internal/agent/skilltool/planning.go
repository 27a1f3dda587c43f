package skilltool

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Planning is the name of the skill.
const Planning = "structured-planning"

// PlanTool is the name of its tool.
const PlanTool = "update_plan"

var planning = builtIn{
	Definition:   skill.Definition{Name: Planning, Check: checkConfig[planningConfig]},
	instructions: instruct(planInstructions),
	tools:        []tool{planTool},
	check:        checkPlan,
}

// planningConfig is the configuration of the skill. Omitted fields use their defaults.
type planningConfig struct {
	MaxSteps *wire.Whole `json:"max_steps,omitzero" minimum:"1" maximum:"100" default:"20"`
}

func (c *planningConfig) check(path string) error {
	return whole(path+".max_steps", c.MaxSteps, 1, 100)
}

func planInstructions(cfg *planningConfig, _ *turn) string {
	return fmt.Sprintf("Before a task of several steps, make a plan of at most %.0f steps with %s. Call it again with all steps as each begins and ends, so that the user sees how far you are. "+
		"Do not end your turn with open steps unless you say why, in why_open.", *cfg.MaxSteps, PlanTool)
}

// Step is a step of a plan.
type Step struct {
	Step   string `json:"step" doc:"The step to do."`
	Status string `json:"status" enum:"pending,in_progress,completed,cancelled"`
}

// Plan is the Data of an event of the kind run.EventPlan.
type Plan struct {
	Steps   []Step `json:"steps"`
	WhyOpen string `json:"why_open,omitempty"`
}

// planInput is what a model calls the tool with.
type planInput struct {
	Steps   *[]Step `json:"steps" required:"true" doc:"All steps of the plan, in their order."`
	WhyOpen *string `json:"why_open,omitzero" doc:"Only when you end your turn with open steps: why they stay open."`
}

const maxStep = 500 // bytes

func (in *planInput) check() error {
	for i, s := range *in.Steps {
		switch s.Status {
		case "pending", "in_progress", "completed", "cancelled":
		default:
			return fault.New(fault.Invalid, "steps[%d].status must be pending, in_progress, completed or cancelled", i)
		}
		if strings.TrimSpace(s.Step) == "" || len(s.Step) > maxStep {
			return fault.New(fault.Invalid, "steps[%d].step must have 1 to %d bytes", i, maxStep)
		}
	}
	if in.WhyOpen != nil && len(*in.WhyOpen) > 4*maxStep {
		return fault.New(fault.Invalid, "why_open must have at most %d bytes", 4*maxStep)
	}
	return nil
}

var planTool = newTool(Planning, PlanTool, "Makes or replaces the plan of the task, which the user sees. Call it with all steps each time one begins or ends.",
	(*planInput).check, func(_ context.Context, _ *Skills, c *loop.Call, in *planInput) (*loop.Outcome, error) {
		of := c.Request.Skill(Planning)
		if of == nil {
			return said("This agent has no skill for plans.", true), nil
		}
		cfg, err := configOf[planningConfig](of.Config)
		if err != nil {
			return nil, err
		}
		if most := int(*cfg.MaxSteps); len(*in.Steps) == 0 || len(*in.Steps) > most {
			return said(fmt.Sprintf("The plan was not changed: it must have 1 to %d steps.", most), true), nil
		}
		p := in.plan()
		open := p.open()
		told := "All steps are done."
		if len(open) > 0 {
			told = fmt.Sprintf("%d of %d steps are open.", len(open), len(p.Steps))
		}
		return noted(said("The plan is kept. "+told, false), run.EventPlan, Planning, p)
	})

func (in *planInput) plan() Plan {
	p := Plan{Steps: *in.Steps}
	if in.WhyOpen != nil {
		p.WhyOpen = strings.TrimSpace(*in.WhyOpen)
	}
	return p
}

// open are the steps that are not at their end.
func (p *Plan) open() (out []string) {
	for _, s := range p.Steps {
		if s.Status == "pending" || s.Status == "in_progress" {
			out = append(out, s.Step)
		}
	}
	return out
}

// planOf is the plan that a conversation has come to; nil for none.
func planOf(items []model.Item) *Plan {
	failed := map[string]bool{}
	for i := len(items) - 1; i >= 0; i-- {
		switch it := &items[i]; {
		case it.Result != nil:
			failed[it.Result.CallID] = it.Result.Failed
		case it.Call != nil && it.Call.Name == PlanTool:
			bad, made := failed[it.Call.ID]
			in, err := planTool.read(it.Call.Arguments)
			if bad || !made || err != nil {
				continue
			}
			p := in.(*planInput).plan()
			return &p
		}
	}
	return nil
}

// maxReminders is how often a model is told of open steps in a run.
const maxReminders = 3

// checkPlan keeps a run from ending with open steps, unless the model says why.
func checkPlan(_ context.Context, c *loop.Check) (*run.Checked, error) {
	p := planOf(c.State.Conversation)
	if p == nil || p.WhyOpen != "" || len(p.open()) == 0 {
		return nil, nil
	}
	open := strings.Join(p.open(), "; ")
	if reminders(c.State, Planning) >= maxReminders {
		text := "The plan has open steps, and the model does not say why: " + open
		n, err := note(Planning, Reminder{text})
		return &run.Checked{Kind: run.EventReminder, Note: n, End: &run.End{Status: run.Incomplete, Reason: run.OpenSteps, Message: text}}, err
	}
	return remind(Planning, fmt.Sprintf("Your plan has open steps: %s. Go on with them. Call %s as each ends. If they cannot or need not be done now, call it with why_open, or with their status cancelled.", open, PlanTool))
}
