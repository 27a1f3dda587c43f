// Package model is the contract between Atoll and language models: what a model is
// asked, what it answers piece by piece, what that costs, and which models there are.
//
// It knows no provider, HTTP or SQL. An adapter for each wire protocol implements Model;
// Guard holds any of them to the contract and to bounds, because a provider may send
// anything.
package model

import (
	"context"
	"iter"
	"strings"
)

// Model answers requests.
type Model interface {
	// Generate asks the model once; it never asks again by itself. The sequence has the
	// answer's deltas as they come, and ends after a delta of kind Stopped, or with one
	// error, which is an *Error or the cause of ctx's end. When ctx ends, or the caller
	// stops reading, the request to the provider has ended before the sequence returns.
	//
	// A sequence may be read once.
	Generate(ctx context.Context, r Request) iter.Seq2[Delta, error]
}

// Request is what a model is asked. Zero values leave things to the provider.
type Request struct {
	Instructions string // the system prompt
	Items        []Item // the conversation, oldest first
	Tools        []Tool
	ToolChoice   ToolChoice
	// ParallelToolCalls says whether one answer may have several tool calls; nil for the
	// provider's default.
	ParallelToolCalls *bool
	Reasoning         Reasoning
	MaxOutputTokens   int // 0 for the model's own bound
	Temperature, TopP *float64
	Format            *Format // nil for text
	// Stop are texts before which an answer ends. A Guard sees to that, also where a provider
	// does not.
	Stop []string
	// CacheKey groups requests that begin alike, for providers that route by it. Providers
	// that cache on request alone are asked to whenever it is set.
	CacheKey string
	Metadata map[string]string // for the provider's own records
}

// Item is a part of a conversation. Exactly one field is set.
type Item struct {
	Message   *Message
	Call      *Call
	Result    *Result
	Reasoning *Thought
}

// Role says who speaks.
type Role string

// Roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system" // instructions in the middle of a conversation
	Developer Role = "developer"
)

// Message is something that was said.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a part of a message or of a tool's result.
type Part struct {
	Kind PartKind
	Text string // of PartText and PartRefusal
	// Citations of PartText that a model said.
	Citations []Citation `json:",omitempty"`

	// Of images and files: a URL that the provider fetches, or the bytes.
	URL       string
	Data      []byte
	MediaType string // of Data, such as image/png
	Name      string // of a file
	Detail    string // of an image: low, high, auto or nothing
}

// PartKind is a kind of Part.
type PartKind string

// Kinds of parts.
const (
	PartText    PartKind = "text"
	PartImage   PartKind = "image"
	PartFile    PartKind = "file"
	PartRefusal PartKind = "refusal" // what a model said in place of an answer
)

// Call is a tool call that a model asked for.
type Call struct {
	ID        string
	Name      string
	Arguments string // unparsed; may be invalid JSON. Plain text for a Custom call
	Custom    bool   `json:",omitzero"` // a call to a tool that takes free text
	State     State  // some providers sign calls
}

// Result is what a tool call came to.
type Result struct {
	CallID string
	Parts  []Part
	Failed bool // whether the tool says that it failed
}

// Thought is a model's reasoning between two things that it said.
type Thought struct {
	Summary []string
	Text    string
	State   State
}

// State is what a provider wants to get back unchanged to go on from an earlier answer:
// a signature, encrypted reasoning. It means nothing to another origin, which is not
// shown it.
type State struct {
	Origin string // of the model that made it; see Origin
	ID     string
	Data   string
}

// Tool is a function that a model may ask to be called.
type Tool struct {
	Name        string
	Description string
	Parameters  []byte // JSON schema of an object; nil for no parameters
	Strict      bool   // the provider makes arguments keep to the schema
	// Custom is set for a tool that takes free text instead of Parameters.
	Custom *FreeText `json:",omitzero"`
}

// FreeText restricts the text that a custom tool takes. The zero FreeText allows any text.
type FreeText struct {
	Syntax  Syntax `json:",omitzero"`
	Grammar string `json:",omitzero"` // written in Syntax
}

// Syntax is a grammar language.
type Syntax string

// Syntaxes.
const (
	SyntaxLark  Syntax = "lark"
	SyntaxRegex Syntax = "regex"
)

// ToolChoice says whether tools are called.
type ToolChoice struct {
	Mode ToolMode // "" for ToolAuto
	Name string   // of ToolNamed
}

// ToolMode is how a ToolChoice decides.
type ToolMode string

// Modes of a tool choice.
const (
	ToolAuto     ToolMode = "auto"
	ToolNone     ToolMode = "none"
	ToolRequired ToolMode = "required"
	ToolNamed    ToolMode = "named"
)

// Reasoning says how long a model thinks and what of it is shown.
type Reasoning struct {
	Effort  Effort // "" for the provider's default
	Summary bool   // ask for a summary in the answer
}

// Effort is how long a model thinks.
type Effort string

// Efforts.
const (
	EffortNone    Effort = "none"
	EffortMinimal Effort = "minimal"
	EffortLow     Effort = "low"
	EffortMedium  Effort = "medium"
	EffortHigh    Effort = "high"
	EffortXHigh   Effort = "xhigh"
)

// Efforts lists every effort.
var Efforts = []Effort{EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh}

// Format asks for an answer that is JSON of a schema.
type Format struct {
	Name        string
	Description string
	Schema      []byte // JSON schema
	Strict      bool
}

// Text returns a message of one text.
func Text(role Role, text string) Item {
	return Item{Message: &Message{Role: role, Parts: []Part{{Kind: PartText, Text: text}}}}
}

// Joined is the text of parts.
func Joined(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
