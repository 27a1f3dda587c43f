package run

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Item is a part of a run's output. Exactly one of its pointers is set.
type Item struct {
	ID     string // unique among the items of all runs
	Status ItemStatus

	Message   *model.Message `json:",omitzero"`
	Reasoning *model.Thought `json:",omitzero"`
	Call      *model.Call    `json:",omitzero"` // the client runs the tool
	Code      *CodeRun       `json:",omitzero"`
	Use       *ToolUse       `json:",omitzero"`
	Listing   *Listing       `json:",omitzero"`
	Approval  *Approval      `json:",omitzero"`
}

// ItemStatus is the state of an item.
type ItemStatus string

// Statuses of items, by the names of the open Responses specification.
const (
	ItemInProgress ItemStatus = "in_progress"
	ItemCompleted  ItemStatus = "completed"
	ItemIncomplete ItemStatus = "incomplete" // the item was cut off
	ItemFailed     ItemStatus = "failed"
	ItemTimedOut   ItemStatus = "timed_out"
)

// CodeRun is code that the model ran in a sandbox.
type CodeRun struct {
	CallID    string
	Sandbox   string // id; "" until the sandbox exists
	Language  string
	Code      string
	Results   []CodeResult
	Execution string // trace id; "" until the execution starts
}

// CodeResult is the outcome of one execution.
type CodeResult struct {
	Stdout, Stderr                   string
	StdoutTruncated, StderrTruncated bool
	ExitCode                         int
	DurationMS                       int64
	Status                           ItemStatus
}

// ToolUse is a call of a tool that the server runs, except code execution.
type ToolUse struct {
	CallID string
	Tool   string          // the tool's name in the catalog, which may differ from the name that the model sees
	Input  json.RawMessage `json:",omitzero"`  // the arguments; empty while the model writes them, or if they are not valid JSON
	Writes string          `json:",omitzero"`  // the arguments that the model has written so far, while Input is empty
	Output json.RawMessage `json:",omitzero"`  // the result in the tool's own format; empty until the call ends
	Error  string          `json:",omitzero"`  // why the call failed, for the caller
	Images []model.Part    `json:",omitempty"` // images of the result
	// For a Remote's tool, which Tool names as the Remote does: Server is the Remote's label,
	// Approval is the id of the item that asked for approval, and Changed says that the server
	// announced a new tool list.
	Server   string `json:",omitzero"`
	Approval string `json:",omitzero"`
	Changed  bool   `json:",omitzero"`
}

// prefix returns the prefix of an item's id for its type.
func (it *Item) prefix() string {
	switch {
	case it.Message != nil:
		return "msg_"
	case it.Reasoning != nil:
		return "rs_"
	case it.Call != nil && it.Call.Custom:
		return "ctc_"
	case it.Call != nil:
		return "fc_"
	case it.Code != nil:
		return "ci_"
	case it.Use != nil && it.Use.Server != "":
		return "mcp_"
	case it.Use != nil:
		return "tc_"
	case it.Listing != nil:
		return "mcpl_"
	case it.Approval != nil:
		return "mcpr_"
	}
	return "item_"
}

// nameItem assigns the item at an index its ID. The ID is the same each time the log is read, so
// that published events still match.
func nameItem(id ID, index int, it *Item) {
	if it.ID == "" {
		it.ID = fmt.Sprintf("%s%s%04x", it.prefix(), id[len("run_"):], index)
	}
}

// itemOf returns the output item for a part of an answer; nil for a call that the server runs
// without approval, because its tool provides the item.
func itemOf(it *model.Item, tools []Tool, s ItemStatus) *Item {
	switch {
	case it.Message != nil:
		return &Item{Status: s, Message: it.Message}
	case it.Reasoning != nil:
		return &Item{Status: s, Reasoning: it.Reasoning}
	case it.Call != nil:
		switch t := toolNamed(tools, it.Call.Name); {
		case t != nil && t.Handler == "":
			return &Item{Status: s, Call: it.Call}
		case t != nil && t.writes():
			return &Item{Status: s, Use: &ToolUse{CallID: it.Call.ID, Tool: cmp.Or(t.RemoteName, t.Name), Server: t.Server, Writes: it.Call.Arguments}}
		case t != nil && t.Approve:
			return &Item{Status: s, Approval: &Approval{CallID: it.Call.ID, Server: t.Server, Tool: t.RemoteName, Arguments: it.Call.Arguments}}
		}
	}
	return nil
}

func toolNamed(tools []Tool, name string) *Tool {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

// Name assigns an item its ID for an index in the output.
func (s *State) Name(index int, it *Item) { nameItem(s.ID, index, it) }

// Written returns the item of a call while the model writes it; nil if readers see the call only
// once it is made.
func (s *State) Written(c model.Call) *Item {
	t := toolNamed(s.Request.Tools, c.Name)
	if t == nil || t.Handler != "" && !t.writes() {
		return nil
	}
	c.Arguments = ""
	return itemOf(&model.Item{Call: &c}, s.Request.Tools, ItemInProgress)
}

// writes reports whether readers see calls of the server's tool while the model writes them.
func (t *Tool) writes() bool { return t.Handler != "" && t.Shown && !t.Approve }

// callOf returns the call of an item that the model is writing.
func (s *State) callOf(u *ToolUse) *model.Call {
	for i := range s.Request.Tools {
		if t := &s.Request.Tools[i]; t.writes() && cmp.Or(t.RemoteName, t.Name) == u.Tool && t.Server == u.Server {
			return &model.Call{ID: u.CallID, Name: t.Name}
		}
	}
	return nil
}
