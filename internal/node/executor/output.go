package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
)

const (
	// keepaliveEvery is how long a log stays silent at most.
	keepaliveEvery = 15 * time.Second
	// cutAt is how long a journal grows before it is cut, if it can be.
	cutAt = 4 << 20
	// maxBatch bounds the events appended together, for output of empty lines.
	maxBatch = 4096
)

// output is the way of a run's output: journal, redactor, line cutters, and from
// there to the log and the answer. All of it happens before the guest's frame is
// taken for received, so a program that writes faster than the log takes it waits.
type output struct {
	writer   Writer
	traceID  string
	limit    int64 // bytes of each stream that are taken
	log      *slog.Logger
	metrics  *metrics
	keepTime time.Duration
	pauses   bool   // the job asks for beginnings of lines
	fail     func() // called once when the way has broken down

	mu      sync.Mutex
	journal *journal // nil once it cannot be written
	pair    *redact.Pair
	lines   [2]lines
	answer  answer
	tails   [2]execution.Tail // for the hint
	raw     [2]int64          // bytes taken
	seq     int64             // of the newest event
	stored  int64             // seq of the newest event that the log has from an earlier process
	batch   []execution.Event
	data    []byte // of batch
	timer   *time.Timer
	partial *time.Timer // nil where events are whole lines
	last    time.Time   // when there was an event
	ended   bool
	muted   bool // the log takes no more

	// Where the journal can be cut once the log has all up to there.
	saved    []byte // a state, or nil
	savedAt  int64  // place in the journal
	savedSeq int64
}

// newOutput returns the way of a job's output, which begins after Start.
func (x *Executor) newOutput(job *execution.Job, folder string, fail func()) (*output, error) {
	set, err := x.sets.Get(job.Secrets, job.Redact)
	if err != nil {
		return nil, fmt.Errorf("prepare the redaction of output: %w", err)
	}
	o := &output{
		writer: x.cfg.Writer, traceID: job.TraceID, limit: job.StoreOutput,
		log: x.cfg.Log, metrics: x.metrics, keepTime: keepaliveEvery, pauses: job.Partial, fail: fail, seq: 1, stored: 1,
		answer: answer{path: x.outputPath(folder), count: func(n int) { x.metrics.spooled.Add(float64(n)) }},
	}
	var emit [2]func([]byte)
	for n := range streams {
		o.lines[n].emit = func(data []byte) { o.event(streams[n], data) }
		emit[n] = func(p []byte) {
			o.lines[n].write(p)
			o.answer.write(n, p)
			o.tails[n].Add(p)
		}
	}
	o.pair = set.Pair(emit[0], emit[1])
	return o, nil
}

// start lets keepalives begin.
func (o *output) start(j *journal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.journal, o.last = j, time.Now()
	o.timer = time.AfterFunc(o.keepTime, o.keepalive)
	if o.pauses {
		o.partial = time.AfterFunc(execution.PartialAfter, o.paused)
	}
}

// write is the run's execution.Sink.
func (o *output) write(s execution.Stream, p []byte) {
	defer func() {
		if v := recover(); v != nil {
			// It is the guest's client that called; what broke is one run's.
			o.log.Error("cannot read a program's output", "trace_id", o.traceID, "panic", v, "stack", string(debug.Stack()))
			o.fail()
		}
	}()
	o.mu.Lock()
	defer o.mu.Unlock()
	n := number(s)
	if room := o.limit - o.raw[n]; int64(len(p)) > room {
		p = p[:max(room, 0)] // the guest does it for us, unless it lies
	}
	if len(p) == 0 || o.ended {
		return
	}
	// The end of a line is the likeliest place where a long journal can be cut.
	if end := bytes.LastIndexByte(p, '\n') + 1; end > 0 && end < len(p) && o.long() && o.saved == nil {
		o.pass(n, p[:end])
		p = p[end:]
	}
	o.pass(n, p)
	if o.partial != nil && o.open() {
		o.partial.Reset(execution.PartialAfter)
	}
}

// pass takes a frame, or a part of one. o.mu is held.
func (o *output) pass(n int, p []byte) {
	o.note(kindOf(n), p)
	o.take(n, p)
	o.flush()
	o.shorten()
}

// long reports whether a cut would shorten the journal enough. The job's record, which
// can be longer than cutAt by its files, stays in each.
func (o *output) long() bool {
	return o.journal != nil && o.journal.size-int64(len(o.journal.head)) >= cutAt
}

func kindOf(n int) byte {
	if n == 1 {
		return kindStderr
	}
	return kindStdout
}

// note writes to the journal. Without one the run goes on, and ends with this
// process. o.mu is held.
func (o *output) note(kind byte, data []byte) {
	if o.journal == nil {
		return
	}
	if err := o.journal.write(kind, data); err != nil {
		o.log.Error("cannot write a run's journal; the run cannot be taken over", "trace_id", o.traceID, "error", err)
		_ = o.journal.clear()
		o.journal = nil
		return
	}
	o.metrics.journalled.Add(float64(header + len(data)))
}

// take passes bytes of a stream on. o.mu is held.
func (o *output) take(n int, p []byte) {
	o.raw[n] += int64(len(p))
	o.pair.Write(n, p)
}

// event adds to the batch. o.mu is held.
func (o *output) event(s execution.Stream, data []byte) {
	if o.seq++; o.seq <= o.stored {
		return
	}
	if len(o.data)+len(data) > execution.MaxChunk || len(o.batch) == maxBatch {
		o.flush()
	}
	at := len(o.data)
	o.data = append(o.data, data...)
	o.batch = append(o.batch, execution.Event{Seq: o.seq, Stream: s, Data: o.data[at:len(o.data):len(o.data)]})
}

// flush appends the batch to the log. o.mu is held.
func (o *output) flush() {
	if len(o.batch) == 0 {
		return
	}
	o.last = time.Now()
	if !o.muted {
		if err := o.writer.Append(o.traceID, o.batch); err != nil {
			// The run goes on, and its answer has what the log lacks.
			o.log.Error("cannot append to an output log; the execution continues without it", "trace_id", o.traceID, "error", err)
			o.muted = true
		}
	}
	o.batch, o.data = o.batch[:0], o.data[:0]
}

// shorten cuts a long journal. A place for that is one where nothing is on its
// way through redactor and cutters but parts of lines; the cut is made when the
// log has everything up to there. o.mu is held.
func (o *output) shorten() {
	if !o.long() {
		return
	}
	if o.saved == nil {
		if !o.pair.Clean() {
			return
		}
		s := state{Seq: o.seq, Raw: o.raw, Answer: o.answer.save()}
		for n := range o.lines {
			s.Pending[n] = o.lines[n].pending
		}
		var err error
		if o.saved, err = json.Marshal(s); err != nil {
			o.log.Warn("cannot trim a run's journal", "trace_id", o.traceID, "error", err)
			return
		}
		o.savedAt, o.savedSeq = o.journal.size, o.seq
	}
	if !o.muted && max(o.stored, o.writer.Stored(o.traceID)) < o.savedSeq {
		return
	}
	if err := o.journal.cut(o.saved, o.savedAt); err != nil {
		o.log.Warn("cannot trim a run's journal", "trace_id", o.traceID, "error", err)
	}
	o.saved = nil
	o.metrics.cuts.Inc()
}

// keepalive adds an event if there was none for a while.
func (o *output) keepalive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	wait := o.keepTime - time.Since(o.last)
	if wait <= 0 {
		o.note(kindKeepalive, nil)
		o.event("", nil)
		o.flush()
		wait = o.keepTime
	}
	o.timer.Reset(wait)
}

// paused makes events of beginnings of lines, in which the program has paused.
func (o *output) paused() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || !o.open() {
		return
	}
	o.note(kindPartial, nil) // a later process cuts the lines at the same place
	o.pause()
	o.flush()
}

// open reports whether a line has begun. o.mu is held.
func (o *output) open() bool { return len(o.lines[0].pending) > 0 || len(o.lines[1].pending) > 0 }

// pause makes events of what is pending, without the beginning of a character and of what
// may be a secret. o.mu is held.
func (o *output) pause() {
	for n := range o.lines {
		o.lines[n].pause()
	}
}

// replay brings a new output to where the journal of another one ends. Events up
// to stored are in the log.
func (o *output) replay(j *journal, stored int64) (end *endRecord, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored = stored
	err = j.read(func(kind byte, data []byte) error {
		switch kind {
		case kindState:
			var s state
			if err := json.Unmarshal(data, &s); err != nil {
				return err
			}
			o.seq, o.raw = s.Seq, s.Raw
			for n := range o.lines {
				o.lines[n].pending = s.Pending[n]
			}
			return o.answer.resume(s.Answer)
		case kindStdout:
			o.take(0, data)
		case kindStderr:
			o.take(1, data)
		case kindKeepalive:
			o.event("", nil)
		case kindPartial:
			o.pause()
		case kindEnd:
			end = new(endRecord)
			if err := json.Unmarshal(data, end); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a record of kind %q", kind)
		}
		o.flush()
		return nil
	})
	return end, err
}

// close ends keepalives and lets go of files.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended = true; o.timer != nil {
		o.timer.Stop()
	}
	if o.partial != nil {
		o.partial.Stop()
	}
	o.answer.close()
	if o.journal != nil {
		_ = o.journal.close() // all is written; after clear it is closed already
	}
}

// hintUnstored explains an answer that has only the beginning of the output.
const hintUnstored = "the server could not store the whole output, so only its beginning is kept; ask the operator to check the blob store and the disk"

// finish passes on what is held, and fills in what r says of the output.
func (o *output) finish(ctx context.Context, blobs Blobs, job *execution.Job, r *execution.Result) {
	o.mu.Lock()
	o.pair.Flush()
	for n := range o.lines {
		o.lines[n].flush()
	}
	o.flush()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
	if o.partial != nil {
		o.partial.Stop()
	}
	o.mu.Unlock() // nothing is written from here on

	stored, err := o.answer.upload(ctx, blobs, job)
	if err != nil {
		o.log.Error("cannot store the full output of an execution", "trace_id", o.traceID, "error", err)
	}
	r.LastSeq, r.Stored = o.seq, stored
	if r.Status == execution.Failed && r.Error == "" || r.Status == execution.Timeout {
		had := execution.Network{Policy: job.Permissions.Network, Refused: r.Traffic.Refused}
		r.Hint = had.Hint(o.tails[1], o.tails[0])
	}
	if err != nil {
		r.Hint = hintUnstored
	}
	cut := func(n int, total int64) ([]byte, bool) {
		kept := o.answer.short[n]
		kept = kept[:min(int64(len(kept)), job.MaxOutput)]
		if stored {
			return nil, o.answer.written[n] > job.MaxOutput || total > o.raw[n]
		}
		return slices.Clip(kept), o.answer.written[n] > int64(len(kept)) || total > o.raw[n]
	}
	r.Stdout, r.StdoutTruncated = cut(0, r.StdoutBytes)
	r.Stderr, r.StderrTruncated = cut(1, r.StderrBytes)
	if r.Kept = int64(len(r.Stdout) + len(r.Stderr)); stored {
		r.Kept = o.answer.written[0] + o.answer.written[1]
	}
	r.Kept += r.Files.Bytes()
}
