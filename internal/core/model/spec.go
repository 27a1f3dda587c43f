package model

import (
	"slices"
	"strings"
)

// Capability is something that models can or cannot do.
type Capability string

// Capabilities.
const (
	Vision           Capability = "vision"
	Files            Capability = "files"
	Tools            Capability = "tools"
	ParallelTools    Capability = "parallel_tools"
	CanReason        Capability = "reasoning"
	StructuredOutput Capability = "structured_output"
	// CustomTools is for models whose provider takes tools with free text. Others get a
	// function in place of such a tool.
	CustomTools Capability = "custom_tools"
)

// Capabilities lists every capability; DefaultCapabilities what a model is taken to be
// able to do where nothing is said.
var (
	Capabilities        = []Capability{Vision, Files, Tools, ParallelTools, CanReason, StructuredOutput, CustomTools}
	DefaultCapabilities = []Capability{Tools, ParallelTools, StructuredOutput}
)

// Spec is what is known of a model.
type Spec struct {
	Prices       Prices
	Context      int // tokens of input and output together; 0 for unknown
	MaxOutput    int // tokens; 0 for unknown
	Capabilities []Capability
}

// Can reports whether the model has a capability.
func (s *Spec) Can(c Capability) bool { return slices.Contains(s.Capabilities, c) }

// fit refuses what the model cannot do, and brings r within its bounds.
func (s *Spec) fit(r *Request) error {
	if len(r.Items) == 0 {
		return Errorf(Rejected, "the request says nothing to the model")
	}
	var lacks []string
	need := func(c Capability, use bool, what string) {
		if use && !s.Can(c) {
			lacks = append(lacks, what+" ("+string(c)+")")
		}
	}
	has := func(k PartKind) bool {
		in := func(parts []Part) bool { return slices.ContainsFunc(parts, func(p Part) bool { return p.Kind == k }) }
		return slices.ContainsFunc(r.Items, func(it Item) bool {
			return it.Message != nil && in(it.Message.Parts) || it.Result != nil && in(it.Result.Parts)
		})
	}
	need(Vision, has(PartImage), "images")
	need(Files, has(PartFile), "files")
	need(Tools, len(r.Tools) > 0, "tools")
	need(CanReason, r.Reasoning.Effort != "" && r.Reasoning.Effort != EffortNone, "reasoning effort")
	need(StructuredOutput, r.Format != nil, "output of a JSON schema")
	if len(lacks) > 0 {
		return Errorf(Rejected, "this model takes no %s", strings.Join(lacks, ", no "))
	}
	if !s.Can(CanReason) {
		r.Reasoning = Reasoning{}
	}
	if len(r.Tools) > 0 && !s.Can(ParallelTools) {
		r.ParallelToolCalls = new(false)
	}
	if s.MaxOutput > 0 && r.MaxOutputTokens > s.MaxOutput {
		r.MaxOutputTokens = s.MaxOutput
	}
	return nil
}
