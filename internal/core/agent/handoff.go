package agent

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Handoff names an agent, pinned to a version, that another agent may delegate work to or move the
// conversation to.
type Handoff struct {
	Agent       ID
	Version     int
	Name        string
	Description string `json:",omitzero"`
	Trigger     string `json:",omitzero"` // when to hand off
	// Depth is the number of handoff levels below the pinned version.
	Depth int `json:",omitzero"`
	// Swarm reports whether the pinned version is itself in swarm mode.
	Swarm bool `json:",omitzero"`
}

// Mode says whether the delegating agent waits (orchestrator) or leaves the conversation (swarm).
type Mode string

// Modes.
const (
	Orchestrator Mode = "orchestrator" // the delegating agent waits for the result
	Swarm        Mode = "swarm"        // the conversation moves to the other agent
)

// Sharing says how much of the earlier conversation an agent receives with a handoff.
type Sharing string

// Sharing modes.
const (
	ShareFull    Sharing = "full"
	ShareSummary Sharing = "summary" // written by the model
)

// Multiagent configures an agent's handoffs.
type Multiagent struct {
	Mode           Mode
	MaxDelegations int // per turn, over the whole tree
	Parallel       bool
	Sharing        Sharing
	OwnSandbox     bool  `json:",omitzero"` // a delegate gets its own tool sandbox
	TimeoutMS      int64 `json:",omitzero"` // limit of each handoff that the agent waits for; 0 in a swarm
}

// Limits of handoffs.
const (
	MaxHandoffs    = 16
	MaxTrigger     = 2048 // characters
	MaxDepth       = 4    // levels of handoffs below an agent
	MaxDelegations = 100
	MinTimeoutMS   = 100
	MaxTimeoutMS   = 24 * 60 * 60 * 1000
	// MaxParallel limits how many handoffs of one agent run at once.
	MaxParallel = 8
)

// Hands returns d's handoff settings, or the defaults if d sets none.
func (d *Definition) Hands() Multiagent {
	if d.Multiagent != nil {
		return *d.Multiagent
	}
	return Defaults("")
}

// Defaults returns the default settings of a mode; "" means Orchestrator.
func Defaults(m Mode) Multiagent {
	if m == Swarm {
		return Multiagent{Mode: Swarm, MaxDelegations: 10, Sharing: ShareFull}
	}
	return Multiagent{Mode: Orchestrator, MaxDelegations: 10, Sharing: ShareSummary, TimeoutMS: 60_000}
}

const handoffPrefix = "handoff_to_"

// HandoffTool returns the name of the tool that hands off to the agent called name. If name
// contains no ASCII letters or digits, place, which counts from 1, identifies the agent.
func HandoffTool(name string, place int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	text := b.String()
	text = strings.Trim(text[:min(len(text), 64-len(handoffPrefix))], "_")
	if text == "" {
		text = fmt.Sprintf("agent_%d", place)
	}
	return handoffPrefix + text
}

func (m *Multiagent) check() error {
	switch {
	case m.Mode != Orchestrator && m.Mode != Swarm:
		return invalid("multiagent.mode must be orchestrator or swarm")
	case m.MaxDelegations < 1 || m.MaxDelegations > MaxDelegations:
		return invalid("multiagent.max_delegations must be between 1 and %d", MaxDelegations)
	case m.Sharing != ShareFull && m.Sharing != ShareSummary:
		return invalid("multiagent.context_sharing must be full or summary")
	case m.Mode == Swarm && m.Sharing != ShareFull:
		return invalid("multiagent.context_sharing must be full in a swarm: the peers share one conversation")
	case m.Mode == Swarm && m.Parallel:
		return invalid("multiagent.parallel must be false in a swarm: one peer speaks at a time")
	case m.Mode == Swarm && m.OwnSandbox:
		return invalid("multiagent.sandbox must be shared in a swarm: the peers share one conversation")
	case m.Mode == Swarm && m.TimeoutMS != 0:
		return invalid("multiagent.timeout_per_handoff_ms must be omitted in a swarm: no agent waits for a peer")
	case m.Mode == Orchestrator && (m.TimeoutMS < MinTimeoutMS || m.TimeoutMS > MaxTimeoutMS):
		return invalid("multiagent.timeout_per_handoff_ms must be between %d and %d", MinTimeoutMS, MaxTimeoutMS)
	}
	return nil
}

func (d *Definition) checkHandoffs() error {
	if d.Multiagent != nil {
		if err := d.Multiagent.check(); err != nil {
			return err
		}
	}
	if len(d.Handoffs) > MaxHandoffs {
		return invalid("handoffs must have at most %d entries", MaxHandoffs)
	}
	swarm := d.Hands().Mode == Swarm
	seen, agents := map[string]string{}, map[ID]bool{}
	if swarm {
		seen[HandoffTool(d.Name, len(d.Handoffs)+1)] = "the agent itself"
	}
	for i := range d.Handoffs {
		h, path := &d.Handoffs[i], fmt.Sprintf("handoffs[%d]", i)
		tool := HandoffTool(h.Name, i+1)
		switch {
		case !h.Agent.Valid() || h.Version < 1:
			return invalid("%s.agent_id must be the id or slug of an agent", path)
		case strings.TrimSpace(h.Name) == "" || utf8.RuneCountInString(h.Name) > MaxName || strings.ContainsRune(h.Name, 0):
			return invalid("%s.name must have 1 to %d characters, and no NUL", path, MaxName)
		case utf8.RuneCountInString(h.Description) > MaxDescription || strings.ContainsRune(h.Description, 0):
			return invalid("%s.description must have at most %d characters, and no NUL", path, MaxDescription)
		case utf8.RuneCountInString(h.Trigger) > MaxTrigger || strings.ContainsRune(h.Trigger, 0):
			return invalid("%s.trigger must have at most %d characters, and no NUL", path, MaxTrigger)
		case seen[tool] != "":
			return invalid("%s.name: its tool would be named %s, like the tool for %s; choose another name", path, tool, seen[tool])
		case swarm && agents[h.Agent]:
			return invalid("%s.agent_id: duplicate; list each agent of a swarm once", path)
		case !swarm && h.Swarm:
			return invalid("%s.agent_id: the agent is a swarm, which needs its own session; hand work to one of its agents instead", path)
		case !swarm && h.Depth >= MaxDepth:
			return invalid("%s.agent_id: the agent has %d levels of hand-offs below it, but this agent may have at most %d", path, h.Depth, MaxDepth)
		}
		seen[tool], agents[h.Agent] = path, true
		if j := slices.IndexFunc(d.Tools, func(t Tool) bool { return t.Type == Custom && t.Name == tool }); j >= 0 {
			return invalid("tools[%d].name: the tool for %[3]s already has the name %[2]s; choose another name", j, tool, path)
		}
	}
	return nil
}

// Depth returns the number of handoff levels below d.
func (d *Definition) Depth() (n int) {
	if d.Hands().Mode == Swarm {
		return 0
	}
	for i := range d.Handoffs {
		n = max(n, d.Handoffs[i].Depth+1)
	}
	return n
}
