package bus

import (
	"bytes"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// Calls of package remote use these subjects, in which FROM is the name of the server that calls.
// The base is names.control for calls to gateways, and names.command for calls to executors.
//
//	BASE.FROM               a call to any server
//	BASE.FROM.to.SERVER     a call to one server
//	BASE.FROM.end           to all servers: the caller gave up the call whose id follows
//	BASE.FROM.more.SERVER   to the server that answers: send a piece of the answer
//	_INBOX.FROM.ID          answers to the call with this id
//
// FROM is part of each subject, so NATS permissions can restrict a server to calls in its own name
// and to its own answers. Servers send answers to such an inbox only: a caller cannot direct them
// to another subject.
//
// A small answer is one message. For a larger one the first message tells the size, and the caller
// then asks for one piece after the other, so that no subscription overflows and a lost piece is
// sent again. While a call runs, the server sends a beat every few seconds. A caller that receives
// nothing for a while gives up.
const (
	toInfix, moreInfix, endSuffix = ".to.", ".more.", ".end"

	inboxes = "_INBOX."
)

const (
	callTime    = time.Minute      // for calls whose context has no deadline
	maxCallTime = 10 * time.Minute // longer deadlines are shortened

	firstPiece = 64 << 10  // larger answers are sent in pieces
	maxPiece   = 512 << 10 // bytes of the answer in one message
	maxAsked   = 8 << 20   // bytes that the callers of one process have asked for, unless very many ask
	maxAnswer  = 128 << 20

	maxCalls    = 1024      // that a server answers at once
	maxCallsOf  = 256       // likewise, of one executor
	maxHeld     = 512 << 20 // bytes of calls under way, and of answers that callers have not fetched yet
	maxHeldOf   = 256 << 20 // likewise, of one executor
	maxEnded    = 4096      // calls that a server remembers because their caller gave up
	endedFor    = 10 * time.Second
	callsQueued = 64 << 20 // bytes of calls that wait for the goroutine that starts them
)

// callTimes are the times that tests change.
type callTimes struct {
	beat    time.Duration // how often a server tells the callers of running calls that it lives
	silence time.Duration // after this time without a message, the other side counts as gone
	again   time.Duration // after which a caller repeats its request for a missing piece
	grace   time.Duration // for calls under way when a server stops
}

var callDefaults = callTimes{beat: 5 * time.Second, silence: 30 * time.Second, again: 2 * time.Second, grace: 5 * time.Second}

// callRequest is a call on the bus.
type callRequest struct {
	Name    string
	Timeout time.Duration
	In      cbor.RawMessage
}

// callOutgoing is callRequest for encoding in one pass.
type callOutgoing struct {
	Name    string
	Timeout time.Duration
	In      any
}

// callAnswer is a message of a server to a caller.
type callAnswer struct {
	Server  string // sends pieces
	Busy    bool   // a beat: the call runs
	Refused string // why the call did not run; another server may run it
	Lost    string // why the answer does not come, although the call may have run
	Total   int    // bytes of the callResult
	Offset  int    // of Data in the callResult
	Data    []byte
}

// callResult is an answer in one or more messages.
type callResult struct {
	Err *remote.Failure `cbor:",omitempty"`
	Out cbor.RawMessage
}

// callResultOutgoing is callResult for encoding in one pass.
type callResultOutgoing struct {
	Err *remote.Failure `cbor:",omitempty"`
	Out any
}

// callMore asks for a piece of an answer. The caller has all of it if Offset is its size.
type callMore struct {
	ID     string
	Offset int
	Size   int
}

// encodeValue encodes a value that another process may have sent: unlike appendMessage it returns
// an error, for example for a time after the year 9999.
func encodeValue(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := encMode.NewEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decodeResult decodes the result of a call into out. It returns the call's error.
func decodeResult(b []byte, out any) error {
	var r callResult
	err := parseMessage(b, &r)
	if err == nil && r.Err == nil && out != nil {
		err = parseMessage(r.Out, out)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot read the answer of another server; run the same version on all servers")
	}
	return r.Err.Decode()
}

// callTimeout limits the time that a caller gives a call.
func callTimeout(d time.Duration) time.Duration {
	if d <= 0 {
		return callTime
	}
	return min(d, maxCallTime)
}

// inboxOf returns the subject of answers to a call.
func inboxOf(from, id string) string { return inboxes + from + "." + id }

// callOf returns the caller and the id of a message to a subject BASE.FROM with a suffix. ok
// is false for a message that must not be answered.
func callOf(m *nats.Msg, base, suffix string) (from, id string, ok bool) {
	from, ok = fromOf(m, base, suffix)
	if !ok {
		return "", "", false
	}
	id, ok = strings.CutPrefix(m.Reply, inboxOf(from, ""))
	return from, id, ok && isToken(id)
}

// fromOf returns the caller in the subject of a message.
func fromOf(m *nats.Msg, base, suffix string) (from string, ok bool) {
	from, ok = strings.CutPrefix(m.Subject, base)
	if !ok {
		return "", false
	}
	from, ok = strings.CutSuffix(from, suffix)
	return from, ok && isToken(from)
}
