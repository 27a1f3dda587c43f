package model

// Delta is a piece of an answer.
type Delta struct {
	Kind DeltaKind
	// Index identifies the block of the answer: a message, a thought, or a call. Deltas of several
	// blocks may interleave; the answer orders its blocks by index.
	Index int
	Text  string // the added text, for Said, Refused, Summarized, Thinking and CallArguments
	// Call carries ID and Name for CallBegun, and the whole call for CallEnded.
	Call      Call
	State     State      // for ThoughtEnded
	Citation  *Citation  // for Cited
	Usage     Usage      // for Used
	Stop      StopReason // for Stopped
	RequestID string     // for Started: the provider's request id, "" if it has none
}

// DeltaKind is a kind of Delta.
type DeltaKind uint8

// Kinds of deltas.
const (
	Started       DeltaKind = iota + 1 // the provider started to answer
	Said                               // text
	Refused                            // text of a refusal
	Summarized                         // text of a summary of reasoning
	SummaryEnded                       // the next Summarized of the block begins another part
	Thinking                           // text of the reasoning itself
	ThoughtEnded                       // a block of reasoning is complete
	CallBegun                          // a tool call
	CallArguments                      // a fragment of a call's arguments, split anywhere
	CallEnded                          // a call is complete
	Used                               // tokens so far; the last value counts
	Stopped                            // the answer is complete
	Cited                              // a part of the text has a citation
)

// StopReason says why an answer ended.
type StopReason string

// Reasons.
const (
	StopEnd       StopReason = "end"        // the model finished
	StopToolCalls StopReason = "tool_calls" // the model waits for tool results
	StopMaxTokens StopReason = "max_output_tokens"
	StopFilter    StopReason = "content_filter" // the provider filtered the answer
	StopRefusal   StopReason = "refusal"
)

// Usage counts the tokens of one answer.
type Usage struct {
	Input      int64 // all of the request, cached or not
	CacheRead  int64 // of Input: read from the provider's cache
	CacheWrite int64 // of Input: written to the provider's cache
	Output     int64 // all of the answer, including reasoning
	Reasoning  int64 // of Output
	// Estimated is the part of Input and Output that Atoll counted itself, because the provider
	// sent no count or the answer was cut before the count.
	Estimated int64 `json:",omitzero"`
}

// Answer is a complete or partial answer.
type Answer struct {
	Items     []Item // messages, thoughts and calls, in the model's order
	Stop      StopReason
	Usage     Usage
	Counted   bool // whether the provider reported Usage
	RequestID string
}
