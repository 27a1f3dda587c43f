package bus

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Versions of messages. A job begins with the first that its executor must know, so
// that an executor which does not know a field that restricts what a program may do
// refuses the job. Such a field raises firstVersion for the jobs that have it; other
// fields raise nothing. Earlier versions were not CBOR.
const (
	firstVersion = 5 // of jobs as they are
	version      = 5 // what this executor and this server know
)

// start is a job on its way to an executor.
type start struct {
	Gateway string // waits for the Result
	Job     execution.Job
}

// encodeStart is a job as it goes to an executor; gateway says who waits for
// its Result.
func encodeStart(gateway string, j *execution.Job) []byte {
	size := len(j.Code) + len(j.Input.Stdin) + 1024
	for _, data := range j.Input.Files {
		size += len(data)
	}
	return appendMessage([]byte{firstVersion}, &start{gateway, *j}, size)
}

func decodeStart(b []byte) (gateway string, j execution.Job, err error) {
	if len(b) == 0 || b[0] < firstVersion || b[0] > version {
		return "", j, errMessage
	}
	var s start
	err = parseMessage(b[1:], &s)
	return s.Gateway, s.Job, err
}

// endTurn begins a message that ends a turn; a job's begins with its version.
const (
	endTurn        = 'e'
	endTurnVersion = 1
)

func encodeEndTurn(turn string) []byte { return append([]byte{endTurn, endTurnVersion}, turn...) }

func decodeEndTurn(b []byte) (turn string, ok bool) {
	if len(b) < 2 || b[0] != endTurn || b[1] != endTurnVersion {
		return "", false
	}
	return string(b[2:]), true
}

// A message of an output log begins with these two bytes.
const (
	logVersion  = 1
	eventsEntry = 1 // events follow, each its length and stream and its data
	endEntry    = 3 // a Result follows
)

// encodeEnd is the last message of a log, and what goes to the gateways.
func encodeEnd(r *execution.Result) []byte {
	utc := *r
	utc.StartedAt, utc.CompletedAt = r.StartedAt.UTC(), r.CompletedAt.UTC()
	return appendMessage([]byte{logVersion, endEntry}, &utc, len(r.Stdout)+len(r.Stderr)+1024)
}

// The streams of events.
const (
	keepaliveCode = iota
	stdoutCode
	stderrCode
	runEventCode // an event of a run, as JSON
)

// beginEvents and appendEvent write a log's message of events, of which only
// the first one's seq is told.
func beginEvents(b []byte, first int64) []byte {
	return binary.AppendUvarint(append(b, logVersion, eventsEntry), uint64(first))
}

func appendEvent(b []byte, code uint64, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))<<2|code), data...)
}

// decoder reads the numbers and data of events. After malformed input it returns zeros.
type decoder struct {
	b   []byte
	bad bool
}

// take returns the next n bytes, which stay part of the message.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// entry is a message of an output log.
type entry struct {
	events []execution.Event // their data stay part of the message
	end    *execution.Result
}

// last is the seq of the last event that the log has with this entry.
func (e *entry) last() int64 {
	if e.end != nil {
		return e.end.LastSeq
	}
	return e.events[len(e.events)-1].Seq
}

// first is the seq of the entry's first event; an end comes after them all.
func (e *entry) first() int64 {
	if e.end != nil {
		return e.end.LastSeq + 1
	}
	return e.events[0].Seq
}

func decodeEntry(b []byte) (entry, error) {
	if len(b) < 2 || b[0] != logVersion {
		return entry{}, errMessage
	}
	d := &decoder{b: b[2:]}
	switch b[1] {
	case endEntry:
		r := &execution.Result{}
		if err := parseMessage(b[2:], r); err != nil {
			return entry{}, err
		}
		return entry{end: r}, errors.Join(inUTC(&r.StartedAt), inUTC(&r.CompletedAt))
	case eventsEntry:
		seq := int64(d.uint())
		if seq < 2 {
			return entry{}, errMessage
		}
		events := make([]execution.Event, 0, countEvents(*d))
		for len(d.b) > 0 {
			head := d.uint()
			ev := execution.Event{Seq: seq, Data: d.take(head >> 2)}
			switch head & 3 {
			case keepaliveCode:
			case stdoutCode:
				ev.Stream = execution.Stdout
			case stderrCode:
				ev.Stream = execution.Stderr
			case runEventCode:
				ev.Stream = runEvent
			}
			events = append(events, ev)
			seq++
		}
		if d.bad || len(events) == 0 || seq < 2 {
			return entry{}, errMessage
		}
		return entry{events: events}, nil
	}
	return entry{}, errMessage
}

// inUTC refuses a time that could not be encoded again.
func inUTC(t *time.Time) error {
	*t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return errMessage
	}
	return nil
}

// countEvents counts events, so that room is made for as many as there are.
func countEvents(d decoder) (n int) {
	for ; len(d.b) > 0; n++ {
		d.take(d.uint() >> 2)
	}
	return n
}

// What an executor answers.
const (
	answerDone  = 1 // it has taken the job on, or has done what it was told
	answerFault = 2 // nothing was done, for the reason that follows
	answerFull  = 3 // likewise; another executor may have room
	answerMoved = 4 // another executor, whose name follows, has the turn
)

type answer struct {
	code  byte
	owner string
	fault *fault.Error
}

// answerMessage is an answer on the bus.
type answerMessage struct {
	Code      byte
	Owner     string
	Kind      fault.Kind
	Msg       string
	Dimension string
	ResetsAt  time.Time
	Detail    string

	RetryAfter time.Duration `cbor:",omitempty"`
}

func (a answer) encode() []byte {
	m := answerMessage{Code: a.code, Owner: a.owner}
	if f := a.fault; f != nil {
		m.Kind, m.Msg, m.Dimension, m.ResetsAt = f.Kind, f.Msg, f.Dimension, f.ResetsAt.UTC()
		m.RetryAfter = f.RetryAfter
		if f.Err != nil {
			m.Detail = f.Err.Error()
		}
	}
	return appendMessage(nil, &m, 128)
}

func decodeAnswer(b []byte) (answer, error) {
	var m answerMessage
	if err := errors.Join(parseMessage(b, &m), inUTC(&m.ResetsAt)); err != nil {
		return answer{}, err
	}
	a := answer{code: m.Code}
	switch a.code {
	case answerDone:
	case answerMoved:
		a.owner = m.Owner
	case answerFault, answerFull:
		a.fault = &fault.Error{Kind: m.Kind, Msg: m.Msg, Dimension: m.Dimension, ResetsAt: m.ResetsAt, RetryAfter: m.RetryAfter}
		if m.Detail != "" {
			a.fault.Err = remoteError(m.Detail)
		}
	default:
		return answer{}, errMessage
	}
	return a, nil
}

// remoteError is what an executor's operator would have read.
type remoteError string

func (e remoteError) Error() string { return string(e) }
