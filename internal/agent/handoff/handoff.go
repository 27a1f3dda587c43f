// Package handoff gives agents the tools to delegate work, or the conversation, to other agents.
//
// A separate run does the delegated work. Its id is made of the run and the number of the call, so
// a process that takes over the call finds that run in any state and starts no second one.
package handoff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Handler is the run.Tool.Handler of the tools here.
const Handler = "handoff"

// Runs drives runs; *loop.Loop implements it.
type Runs interface {
	Begin(ctx context.Context, r *run.Run, q *run.Request, limit int, cause error) (done <-chan struct{}, err error)
	Wait(ctx context.Context, t tenant.ID, id run.ID) error
	State(ctx context.Context, id run.ID) (*run.State, error)
	Cancel(ctx context.Context, t tenant.ID, id run.ID) error
}

// Threads stores the threads of sessions; session.Store implements it.
type Threads interface {
	OpenThread(ctx context.Context, t *session.Thread, most int) error
	CloseThread(ctx context.Context, t *session.Thread) error
	ResumeThread(ctx context.Context, t *session.Thread) (*run.Kept, error)
}

// Planner returns the request of a member of a turn, without a conversation.
type Planner interface {
	Plan(ctx context.Context, a *Ask) (*run.Request, error)
}

// Ask is the input of a Planner.
type Ask struct {
	Run   *run.Run // that is to do it, or does
	Chain []run.Member
	To    run.Member
	Mode  agent.Mode
}

// Handoffs implements loop.Handler for the tools.
type Handoffs struct {
	Runs  Runs
	Store interface { // of runs
		Run(ctx context.Context, t tenant.ID, id run.ID) (*run.Run, error)
	}
	Threads Threads
	Planner Planner
	// LetGo ends the sandbox that only the given run uses. If that fails, the sandbox ends with its window.
	LetGo func(ctx context.Context, r *run.Run)
}

var (
	_ loop.Handler = (*Handoffs)(nil)
	_ loop.Opener  = (*Handoffs)(nil)
	_ loop.Ender   = (*Handoffs)(nil)
)

// options are the run.Tool.Options of a tool here.
type options struct {
	To      run.Member    `json:",omitzero"`
	Chain   []run.Member  `json:",omitempty"` // from the session's agent to the one that has the tool
	Mode    agent.Mode    `json:",omitzero"`
	Sharing agent.Sharing `json:",omitzero"`
	Own     bool          `json:",omitzero"` // a sandbox of its own
	Timeout int64         `json:",omitzero"` // milliseconds
	Most    int           `json:",omitzero"` // hand-offs of a turn
}

func optionsOf(t *run.Tool) (o options, err error) { return o, json.Unmarshal(t.Options, &o) }

// taskInput is what a model calls a tool with that hands work on.
type taskInput struct {
	Task *string `json:"task" required:"true" empty:"false" doc:"The task of the other agent, with everything that it needs to know."`
}

// moveInput is what a model calls a tool with that hands the conversation on.
type moveInput struct {
	Reason *string `json:"reason,omitzero" doc:"Why, for the other agent."`
}

const maxTask = 256 << 10 // bytes

func read(mode agent.Mode, arguments string) (text string, err error) {
	if mode == agent.Swarm {
		var in moveInput
		if err = wire.Arguments.Decode([]byte(arguments), &in); err == nil && in.Reason != nil {
			text = *in.Reason
		}
	} else {
		var in taskInput
		if err = wire.Arguments.Decode([]byte(arguments), &in); err == nil {
			text = *in.Task
		}
	}
	if err == nil && len(text) > maxTask {
		err = fmt.Errorf("the text must have at most %d bytes", maxTask)
	}
	return text, err
}

// Show implements loop.Handler.
func (h *Handoffs) Show(c *loop.Call) (*run.Item, error) {
	o, err := optionsOf(c.Tool)
	if err != nil {
		return nil, err
	}
	if _, err := read(o.Mode, c.Call.Arguments); err != nil {
		return nil, err
	}
	return &run.Item{Status: run.ItemInProgress, Use: &run.ToolUse{CallID: c.Call.ID, Tool: c.Call.Name, Input: json.RawMessage(c.Call.Arguments)}}, nil
}

// Claims implements loop.Claimer.
func (h *Handoffs) Claims(c *loop.Call) bool {
	o, err := optionsOf(c.Tool)
	return err == nil && o.Mode == agent.Orchestrator
}

// Opens implements loop.Opener.
func (h *Handoffs) Opens(c *loop.Call) *run.Opens {
	o, err := optionsOf(c.Tool)
	if err != nil {
		return nil
	}
	task, err := read(o.Mode, c.Call.Arguments)
	if err != nil {
		return nil
	}
	if c.Resumes != nil {
		return &run.Opens{ID: c.Resumes.Thread, Member: o.To, Task: task, Again: true}
	}
	return &run.Opens{ID: run.ThreadOf(run.ChildOf(c.Run.ID, c.Number)), Member: o.To, Task: task}
}

// Do implements loop.Handler.
func (h *Handoffs) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	o, err := optionsOf(c.Tool)
	if err != nil {
		return nil, err
	}
	text, err := read(o.Mode, c.Call.Arguments)
	if err != nil {
		return nil, err // Show has read it
	}
	if o.Mode == agent.Swarm {
		return h.move(ctx, c, &o, text)
	}
	return h.delegate(ctx, c, &o, text)
}

// said is an outcome that is a text.
func said(c *loop.Call, text string, failed bool) *loop.Outcome {
	status := run.ItemCompleted
	if failed {
		status = run.ItemFailed
	}
	return &loop.Outcome{
		Result: model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: text}}},
		Item:   &run.Item{Status: status, Use: c.Item.Use},
	}
}

// move hands the conversation on.
func (h *Handoffs) move(ctx context.Context, c *loop.Call, o *options, reason string) (*loop.Outcome, error) {
	switch {
	case !c.First:
		return said(c, "The conversation was not handed on: it is handed on once at a time.", true), nil
	case c.Moves >= o.Most:
		return said(c, fmt.Sprintf("The conversation was not handed on: there were %d hand-offs in this turn, which is the most. Answer the user yourself.", c.Moves), true), nil
	}
	q, err := h.Planner.Plan(ctx, &Ask{Run: c.Run, Chain: o.Chain, To: o.To, Mode: agent.Swarm})
	if why, failed := refusal(ctx, err); failed {
		return said(c, "The conversation was not handed on: "+why, true), nil
	}
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("The conversation was handed on. From here on you are %s: answer the user.", o.To.Name)
	if reason != "" {
		text += " Why it was handed on: " + reason
	}
	out := said(c, text, false)
	out.Moves = &run.Move{To: o.To, Request: q}
	return out, nil
}

// Give adds the hand-off tools of an agent, and their instructions, to a run's request. chain lists
// the agents of the turn, from the session's agent to the one that delegates.
func Give(q *run.Request, hands agent.Multiagent, to []agent.Handoff, chain []run.Member) error {
	if len(to) == 0 {
		return nil
	}
	var lines strings.Builder
	for i := range to {
		one := &to[i]
		name := agent.HandoffTool(one.Name, i+1)
		o := options{To: run.Member{Agent: string(one.Agent), Version: one.Version, Name: one.Name}, Chain: chain, Mode: hands.Mode, Sharing: hands.Sharing, Own: hands.OwnSandbox, Timeout: hands.TimeoutMS, Most: hands.MaxDelegations}
		sealed, err := json.Marshal(o)
		if err != nil {
			return err
		}
		t := run.Tool{Tool: model.Tool{Name: name, Description: about(hands.Mode, one), Parameters: schemas[hands.Mode]}, Handler: Handler, Uncounted: true, Options: sealed}
		t.Serial = !hands.Parallel
		t.Beside = agent.MaxParallel
		q.Tools = append(slices.DeleteFunc(q.Tools, func(other run.Tool) bool { return other.Name == name }), t)
		fmt.Fprintf(&lines, "- %s, by %s", one.Name, name)
		if one.Description != "" {
			fmt.Fprintf(&lines, ": %s", one.Description)
		}
		if one.Trigger != "" {
			fmt.Fprintf(&lines, " Hand on to it %s", one.Trigger)
		}
		lines.WriteByte('\n')
	}
	head := "# Hand-offs\nThere are other agents that you can hand work to. Each works on its own and gives you its answer; the user sees yours."
	if hands.Mode == agent.Swarm {
		head = "# Hand-offs\nSeveral agents share this conversation, and you work as one. Hand it off when another agent is better suited; that agent then speaks to the user."
	}
	q.Instructions = strings.TrimLeft(q.Instructions+"\n\n"+head+"\n"+lines.String(), "\n")
	return nil
}

func about(mode agent.Mode, to *agent.Handoff) string {
	text := fmt.Sprintf("Hands work to %s, and returns its answer.", to.Name)
	if mode == agent.Swarm {
		text = fmt.Sprintf("Hands the conversation on to %s.", to.Name)
	}
	for _, more := range []string{to.Description, to.Trigger} {
		if more != "" {
			text += " " + more
		}
	}
	return text
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
