package run

import (
	"time"

	"encoding/json"
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Remote is an external server whose tools a run may call.
type Remote struct {
	Label  string // identifies the server in the run
	Sealed []byte // the address and credentials, readable only by the handler
	Tools  []RemoteTool
}

// RemoteTool is a tool as its server described it. Do not trust the text.
type RemoteTool struct {
	Name, Description string
	Schema            json.RawMessage
	Annotations       json.RawMessage `json:",omitzero"`
}

// Listing is the output item that shows a Remote's tools.
type Listing struct {
	Server string
	Tools  []RemoteTool
}

// Approval is the output item that asks the client to approve a call.
type Approval struct {
	CallID       string
	Server, Tool string
	Arguments    string
}

// Said is a client's decision about an Approval item of a response.
type Said struct {
	Item    string // id
	Call    string
	Tool    string
	Approve bool
	Reason  string `json:",omitzero"`
	// Noted says that the store has already recorded the decision.
	Noted bool `json:",omitzero"`
}

// Asks is a call of a response that waits for approval.
type Asks struct {
	Item string // id
	Approval
	At, Until time.Time // a zero Until means no deadline
}

// asksAt returns the calls that wait for approval when the response ends.
func (s *State) asksAt(at time.Time) (out []Asks) {
	for _, p := range s.Waiting() {
		if !p.Approves() {
			continue
		}
		for i := range s.Output {
			it := &s.Output[i]
			if it.Approval == nil || it.Approval.CallID != p.Call.ID {
				continue
			}
			a := Asks{Item: it.ID, Approval: *it.Approval, At: at}
			if s.Request.Within > 0 {
				a.Until = at.Add(s.Request.Within)
			}
			out = append(out, a)
		}
	}
	return out
}

// Approved is a call of an earlier run that the client has since approved. The run begins with it.
type Approved struct {
	Call     string // id of a call in Request.Input without a result
	Approval string // id of the item that asked for approval
	Event    int64  `json:"Told,omitzero"` // SessionEvent.Seq of the call, in a turn; stored as Told
	// Resumes is set for a delegating call whose delegate waited for the client.
	Resumes *Resumed `json:",omitzero"`
}

// client reports whether the call waits for the client, to run it or to approve it.
func (p *Pending) client() bool {
	return p.Tool != nil && (p.Tool.Handler == "" || p.Tool.Approve && !p.approved || len(p.held) > 0)
}

// Approves reports whether the client must approve the call rather than make it.
func (p *Pending) Approves() bool { return p.Tool != nil && p.Tool.Handler != "" }

// resume makes the approved calls pending. It returns false if one is unknown.
func (s *State) resume(approved []Approved) bool {
	for _, a := range approved {
		at := s.call(a.Call)
		if at < 0 {
			return false
		}
		c := s.Conversation[at].Call
		s.asks++
		s.pending = append(s.pending, Pending{Call: c, Number: s.asks, Tool: toolNamed(s.Request.Tools, c.Name), index: -1, approved: true, Event: a.Event, Resumes: a.Resumes})
		s.resumed = max(s.resumed, at+1)
		s.stop = model.StopToolCalls
	}
	// Results come right after the calls, before what the client said with its approval.
	for s.resumed > 0 && s.resumed < len(s.Conversation) && (s.Conversation[s.resumed].Call != nil || s.Conversation[s.resumed].Result != nil) {
		s.resumed++
	}
	return true
}

// call returns the index of the last call with an id in the conversation; -1 for none.
func (s *State) call(id string) int {
	for at, it := range slices.Backward(s.Conversation) {
		if it.Call != nil && it.Call.ID == id {
			return at
		}
	}
	return -1
}

// Approval returns the id of the item that approved a call; "" if the call needed no approval.
func (q *Request) Approval(call string) string {
	for _, a := range q.Approved {
		if a.Call == call {
			return a.Approval
		}
	}
	return ""
}

// Remote returns the server with a label, or nil.
func (q *Request) Remote(label string) *Remote {
	for i := range q.Remotes {
		if q.Remotes[i].Label == label {
			return &q.Remotes[i]
		}
	}
	return nil
}
