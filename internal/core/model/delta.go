package model

// Delta is a piece of an answer.
type Delta struct {
	Kind DeltaKind
	// Index tells the blocks of an answer apart: a message, a thought, each call. Deltas of
	// several blocks may alternate; the answer has its blocks by rising index.
	Index int
	Text  string // of Said, Refused, Summarized, Thinking and CallArguments: what is added
	// Call has ID and Name with CallBegun. With CallEnded it is the whole call.
	Call      Call
	State     State      // of ThoughtEnded
	Citation  *Citation  // of Cited
	Usage     Usage      // of Used
	Stop      StopReason // of Stopped
	RequestID string     // of Started: the provider's name for the request, "" if it has none
}

// DeltaKind is a kind of Delta.
type DeltaKind uint8

// Kinds of deltas.
const (
	Started       DeltaKind = iota + 1 // the provider has begun to answer
	Said                               // text
	Refused                            // text in place of an answer
	Summarized                         // text of a summary of reasoning
	SummaryEnded                       // the next Summarized of the block begins another part
	Thinking                           // text of the reasoning itself
	ThoughtEnded                       // a block of reasoning is whole
	CallBegun                          // a tool call
	CallArguments                      // a fragment of a call's arguments, cut anywhere
	CallEnded                          // a call is whole
	Used                               // tokens so far; the last one counts
	Stopped                            // the answer is whole
	Cited                              // a part of the text is cited
)

// StopReason is why an answer ended.
type StopReason string

// Reasons.
const (
	StopEnd       StopReason = "end"        // it was all said
	StopToolCalls StopReason = "tool_calls" // results are wanted
	StopMaxTokens StopReason = "max_output_tokens"
	StopFilter    StopReason = "content_filter" // the provider cut it
	StopRefusal   StopReason = "refusal"
)

// Usage is tokens of one answer.
type Usage struct {
	Input      int64 // all of the request's, from a cache or not
	CacheRead  int64 // of Input: read from the provider's cache
	CacheWrite int64 // of Input: written to it
	Output     int64 // all of the answer's, reasoning too
	Reasoning  int64 // of Output
	// Estimated tokens are those of Input and Output that Atoll counted itself, because the provider
	// announced no count or the answer was cut before it did.
	Estimated int64 `json:",omitzero"`
}

// Answer is a whole answer, or as much of it as came.
type Answer struct {
	Items     []Item // messages, thoughts and calls, in the model's order
	Stop      StopReason
	Usage     Usage
	Counted   bool // whether the provider told Usage
	RequestID string
}
