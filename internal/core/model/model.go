// Package model is the contract between Atoll and language models: requests, streamed answers,
// prices, and the catalog of models.
//
// It does not depend on a provider, HTTP or SQL. An adapter for each wire protocol implements
// Model. Guard enforces the contract and limits on every adapter, because a provider may send
// anything.
package model

import (
	"context"
	"iter"
	"strings"
)

// Model answers requests.
type Model interface {
	// Generate sends one request to the model and never retries. The sequence yields the answer's
	// deltas as they arrive. It ends after a Stopped delta, or with one error: an *Error or the
	// cause of ctx. If ctx ends or the caller stops reading, the provider request ends before the
	// sequence returns.
	//
	// Callers may iterate over a sequence only once.
	Generate(ctx context.Context, r Request) iter.Seq2[Delta, error]
}

// Request is a request to a model. Zero values use the provider's defaults.
type Request struct {
	Instructions string // the system prompt
	Items        []Item // the conversation, oldest first
	Tools        []Tool
	ToolChoice   ToolChoice
	// ParallelToolCalls says whether one answer may contain several tool calls; nil for the
	// provider's default.
	ParallelToolCalls *bool
	Reasoning         Reasoning
	MaxOutputTokens   int // 0 for the model's limit
	Temperature, TopP *float64
	Format            *Format // nil for text
	// Stop lists texts that end an answer. Guard enforces them even if the provider does not.
	Stop []string
	// CacheKey groups requests with the same prefix, for providers that route by it. Setting it
	// also enables caching for providers that cache only on request.
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

// Role names the speaker of a message.
type Role string

// Roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system" // instructions within a conversation
	Developer Role = "developer"
)

// Message is a message in a conversation.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a part of a message or of a tool's result.
type Part struct {
	Kind PartKind
	Text string // for PartText and PartRefusal
	// Citations belong to PartText from a model.
	Citations []Citation `json:",omitempty"`

	// For images and files: a URL that the provider fetches, or the bytes.
	URL       string
	Data      []byte
	MediaType string // of Data, such as image/png
	Name      string // of a file
	Detail    string // of an image: low, high, auto or empty
}

// PartKind is a kind of Part.
type PartKind string

// Kinds of parts.
const (
	PartText    PartKind = "text"
	PartImage   PartKind = "image"
	PartFile    PartKind = "file"
	PartRefusal PartKind = "refusal" // a model's refusal
)

// Call is a tool call requested by a model.
type Call struct {
	ID        string
	Name      string
	Arguments string // unparsed; may be invalid JSON. Plain text for a Custom call
	Custom    bool   `json:",omitzero"` // a call to a tool that takes free text
	State     State  // some providers sign calls
}

// Result is the result of a tool call.
type Result struct {
	CallID string
	Parts  []Part
	Failed bool // whether the tool reported failure
}

// Thought is a block of a model's reasoning.
type Thought struct {
	Summary []string
	Text    string
	State   State
}

// State is opaque provider data, such as a signature or encrypted reasoning, that must go back
// unchanged to continue an earlier answer. Atoll sends it only to its own origin.
type State struct {
	Origin string // of the model that created it; see Record.Origin
	ID     string
	Data   string
}

// Tool is a function that a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  []byte // JSON schema of an object; nil for no parameters
	Strict      bool   // the provider enforces the schema on arguments
	// Custom is set for a tool that accepts free text instead of Parameters.
	Custom *FreeText `json:",omitzero"`
}

// FreeText restricts the text of a custom tool. The zero FreeText allows any text.
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

// ToolChoice says whether the model must call a tool.
type ToolChoice struct {
	Mode ToolMode // "" for ToolAuto
	Name string   // for ToolNamed
}

// ToolMode is the mode of a ToolChoice.
type ToolMode string

// Modes of a tool choice.
const (
	ToolAuto     ToolMode = "auto"
	ToolNone     ToolMode = "none"
	ToolRequired ToolMode = "required"
	ToolNamed    ToolMode = "named"
)

// Reasoning controls how much a model reasons and whether it returns a summary.
type Reasoning struct {
	Effort  Effort // "" for the provider's default
	Summary bool   // request a summary in the answer
}

// Effort controls how long a model reasons.
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

// Format requests an answer in JSON that matches a schema.
type Format struct {
	Name        string
	Description string
	Schema      []byte // JSON schema
	Strict      bool
}

// Text returns a message with one text part.
func Text(role Role, text string) Item {
	return Item{Message: &Message{Role: role, Parts: []Part{{Kind: PartText, Text: text}}}}
}

// Joined concatenates the text of parts.
func Joined(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
