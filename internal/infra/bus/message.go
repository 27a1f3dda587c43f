package bus

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// jobVersion is that of jobs. It grows with every field that restricts what a
// program may do: an executor that does not know one must not run the job.
const jobVersion = 3

// inputVersion is that of jobs whose programs are given arguments, stdin or files: an
// executor that does not know them must not run the job without.
const inputVersion = 4

// encodeStart is a job as it goes to an executor; gateway says who waits for
// its Result.
func encodeStart(gateway string, j *execution.Job) []byte {
	e := &encoder{b: make([]byte, 0, len(j.Code)+1024)}
	if j.Input.Empty() {
		e.byte(jobVersion)
	} else {
		e.byte(inputVersion)
	}
	e.str(gateway)
	e.str(j.TraceID)
	e.str(j.Tenant)
	e.str(j.Code)
	e.str(string(j.Language))
	e.int(int64(j.Timeout))
	e.strMap(j.Env)
	e.str(j.Image)
	l := &j.Limits
	e.float(l.CPU)
	e.int(l.Memory)
	e.int(int64(l.Processes))
	e.int(int64(l.OpenFiles))
	e.int(l.Root)
	e.int(l.Tmp)
	e.int(l.Shm)
	e.int(int64(l.Inodes))
	e.strMap(j.BaseEnv)
	e.str(j.Turn)
	e.int(j.MaxOutput)
	e.int(j.StoreOutput)
	e.strs(j.Secrets)
	appendBound(e, j.BoundSecrets)
	e.strs(j.Redact)
	appendPermissions(e, &j.Permissions)
	appendThread(e, j.Thread)
	appendMounts(e, j.Mounts)
	if !j.Input.Empty() {
		appendInput(e, &j.Input)
	}
	return e.b
}

func decodeStart(b []byte) (gateway string, j execution.Job, err error) {
	d := &decoder{b: b}
	has := d.byte()
	if has != jobVersion && has != inputVersion {
		d.fail()
	}
	gateway = d.str()
	j.TraceID = d.str()
	j.Tenant = d.str()
	j.Code = d.str()
	j.Language = execution.Language(d.str())
	j.Timeout = time.Duration(d.int())
	j.Env = d.strMap()
	j.Image = d.str()
	l := &j.Limits
	l.CPU = d.float()
	l.Memory = d.int()
	l.Processes = int(d.int())
	l.OpenFiles = int(d.int())
	l.Root = d.int()
	l.Tmp = d.int()
	l.Shm = d.int()
	l.Inodes = int(d.int())
	j.BaseEnv = d.strMap()
	j.Turn = d.str()
	j.MaxOutput = d.int()
	j.StoreOutput = d.int()
	j.Secrets = d.strs()
	j.BoundSecrets = readBound(d)
	j.Redact = d.strs()
	j.Permissions = readPermissions(d)
	j.Thread = readThread(d)
	j.Mounts = readMounts(d)
	if has == inputVersion {
		j.Input = readInput(d)
	}
	return gateway, j, d.err()
}

// endTurn begins a message that ends a turn; a job's begins with its version.
const endTurn = 'e'

func encodeEndTurn(turn string) []byte { return append([]byte{endTurn, version}, turn...) }

func decodeEndTurn(b []byte) (turn string, ok bool) {
	if len(b) < 2 || b[0] != endTurn || b[1] != version {
		return "", false
	}
	return string(b[2:]), true
}

func appendResult(e *encoder, r *execution.Result) {
	e.str(r.TraceID)
	e.str(string(r.Status))
	e.int(int64(r.ExitCode))
	e.str(r.Error)
	e.bool(r.NotStarted)
	e.byte(byte(r.Kind))
	e.bytes(r.Stdout)
	e.bytes(r.Stderr)
	e.int(r.StdoutBytes)
	e.int(r.StderrBytes)
	e.bool(r.StdoutTruncated)
	e.bool(r.StderrTruncated)
	e.bool(r.Stored)
	e.bool(r.OutputTruncated)
	e.int(r.LastSeq)
	e.time(r.StartedAt)
	e.time(r.CompletedAt)
	e.int(r.PeakMemory)
	e.bool(r.Start == execution.StartWarm)
	e.bool(r.Reused)
	appendThreadState(e, r.Thread)
	appendTraffic(e, &r.Traffic)
	e.str(string(r.Start))
	e.str(r.Hint)
	appendFiles(e, &r.Files)
}

func readResult(d *decoder) (r execution.Result) {
	r.TraceID = d.str()
	r.Status = execution.Status(d.str())
	r.ExitCode = int(d.int())
	r.Error = d.str()
	r.NotStarted = d.bool()
	r.Kind = fault.Kind(d.byte())
	r.Stdout = d.bytes()
	r.Stderr = d.bytes()
	r.StdoutBytes = d.int()
	r.StderrBytes = d.int()
	r.StdoutTruncated = d.bool()
	r.StderrTruncated = d.bool()
	r.Stored = d.bool()
	r.OutputTruncated = d.bool()
	r.LastSeq = d.int()
	r.StartedAt = d.time()
	r.CompletedAt = d.time()
	r.PeakMemory = d.int()
	warm := d.bool()
	if !r.NotStarted {
		r.Start = execution.StartOf(warm)
	}
	r.Reused = d.bool()
	r.Thread = readThreadState(d)
	r.Traffic = readTraffic(d)
	if len(d.b) > 0 { // Results of the version before end here
		r.Start, r.Hint, r.Files = execution.Start(d.str()), d.str(), readFiles(d)
	}
	return r
}

// What a message of an output log is.
const (
	eventsEntry = 1
	endEntry    = 2
)

// encodeEnd is the last message of a log, and what goes to the gateways.
func encodeEnd(r *execution.Result) []byte {
	e := newEncoder(len(r.Stdout) + len(r.Stderr) + 256)
	e.byte(endEntry)
	appendResult(e, r)
	return e.b
}

// The streams of events.
const (
	keepaliveCode = iota
	stdoutCode
	stderrCode
)

// beginEvents and appendEvent write a log's message of events, of which only
// the first one's seq is told.
func beginEvents(b []byte, first int64) []byte {
	e := encoder{b: append(b, version, eventsEntry)}
	e.uint(uint64(first))
	return e.b
}

func appendEvent(b []byte, code uint64, data []byte) []byte {
	e := encoder{b: b}
	e.uint(uint64(len(data))<<2 | code)
	return append(e.b, data...)
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
	d := newDecoder(b)
	switch d.byte() {
	case endEntry:
		r := readResult(d)
		return entry{end: &r}, d.err()
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
			default:
				d.fail()
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

func (a answer) encode() []byte {
	e := newEncoder(64)
	e.byte(a.code)
	switch a.code {
	case answerMoved:
		e.str(a.owner)
	case answerFault, answerFull:
		e.byte(byte(a.fault.Kind))
		e.str(a.fault.Msg)
		e.str(a.fault.Dimension)
		e.time(a.fault.ResetsAt)
		detail := ""
		if a.fault.Err != nil {
			detail = a.fault.Err.Error()
		}
		e.str(detail)
	}
	return e.b
}

func decodeAnswer(b []byte) (answer, error) {
	d := newDecoder(b)
	a := answer{code: d.byte()}
	switch a.code {
	case answerDone:
	case answerMoved:
		a.owner = d.str()
	case answerFault, answerFull:
		a.fault = &fault.Error{Kind: fault.Kind(d.byte()), Msg: d.str(), Dimension: d.str(), ResetsAt: d.time()}
		if detail := d.str(); detail != "" {
			a.fault.Err = remoteError(detail)
		}
	default:
		d.fail()
	}
	return a, d.err()
}

// remoteError is what an executor's operator would have read.
type remoteError string

func (e remoteError) Error() string { return string(e) }
