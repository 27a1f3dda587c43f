package executor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// journalFile is the journal of a sandbox's run, in the sandbox's folder. It is
// a file of records: the job first, then what came of it. Each is written at
// once and before anything follows from it, so all that a killed process can
// leave is a last record that is cut short, which was never acted upon.
//
// The job is part of it, rather than a file of its own, because making a file
// takes longer than many a program: the journal is made, empty, together with
// its sandbox.
const journalFile = "journal"

// Kinds of records.
const (
	kindJob       = 'j'
	kindState     = 's' // where the journal was cut: only what follows it counts
	kindStdout    = 'o' // a frame of the guest
	kindStderr    = 'e'
	kindKeepalive = 'k'
	kindPartial   = 'p' // beginnings of lines became events
	kindEnd       = 'x'
	kindIdle      = 'i' // the only one: no job has the sandbox, which a turn keeps
)

// jobRecord begins a journal.
type jobRecord struct {
	Job       execution.Job
	Secrets   [][]byte // the job's, which may be any bytes
	Run       uint64   // the run's number in its sandbox
	Created   time.Time
	Started   time.Time
	Start     execution.StartReason
	Warm      bool `json:",omitempty"` // instead of Start, by the version before
	Reused    bool
	Isolation execution.Isolation `json:",omitempty"`
	Window    window              `json:",omitzero"` // as task has them
	Windows   int                 `json:",omitzero"`
	Skills    map[string]string   `json:",omitempty"` // that the sandbox of the turn had before, as turn has them
	Trace     map[string][]string `json:",omitempty"` // whose trace the run is part of, as headers
}

// start says how the sandbox was got.
func (r *jobRecord) start() execution.StartReason {
	switch {
	case r.Start != "":
		return r.Start
	case r.Warm:
		return execution.StartPooled
	}
	return execution.StartPoolEmpty
}

// seal puts the job's secrets where JSON does not change them, open back.
func (r *jobRecord) seal() {
	for _, s := range r.Job.Secrets {
		r.Secrets = append(r.Secrets, []byte(s))
	}
	r.Job.Secrets = nil
}

func (r *jobRecord) open() {
	for _, s := range r.Secrets {
		r.Job.Secrets = append(r.Job.Secrets, string(s))
	}
	r.Secrets = nil
}

// endRecord is how the program ended, from when that was known on.
type endRecord struct {
	Status      execution.Status
	ExitCode    int
	Error       string
	Bytes       [2]int64
	PeakMemory  int64
	CompletedAt time.Time
	Traffic     execution.Traffic
	Files       execution.OutputFiles

	// Counts says that the thread of the job is to have what the program left in
	// its home; Saved, that this was done or cannot be; Thread is the state then.
	Counts bool                   `json:",omitempty"`
	Saved  bool                   `json:",omitempty"`
	Thread *execution.ThreadState `json:",omitempty"`

	// Collects says that the program has ended and that its output files were being
	// stored when the record was written. CompletedAt and Files are not known then.
	Collects bool `json:",omitempty"`
}

// filesLost makes the run a failure because its output files could not be stored.
func (e *endRecord) filesLost() {
	e.fail("the files that the program gives back could not be stored")
	e.Files = execution.OutputFiles{}
}

// fail adds a reason why the run does not count as a success, whatever its program's exit
// code is: answers, records and events derive success from either field.
func (e *endRecord) fail(reason string) {
	if e.Error != "" {
		reason = e.Error + "; " + reason
	}
	if e.Error = reason; e.Status == execution.Success {
		e.Status, e.ExitCode = execution.Failed, -1
	}
}

// idleRecord is what a turn knows of its sandbox.
type idleRecord struct {
	Job    execution.Job     // the last one, without what only its program needed
	Window window            `json:",omitzero"` // as turn has them
	Trusts bool              `json:",omitempty"`
	Skills map[string]string `json:",omitempty"`
}

// state is what stands for the frames that were cut off.
type state struct {
	Seq     int64
	Raw     [2]int64
	Pending [2][]byte // in the line cutters
	Answer  savedAnswer
}

// Prepare makes the empty journal of a new sandbox in its folder.
func Prepare(folder string) error {
	f, err := os.OpenFile(filepath.Join(folder, journalFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// HasJob reports whether a sandbox's folder has a journal that is in use.
func HasJob(folder string) bool {
	st, err := os.Stat(filepath.Join(folder, journalFile))
	return err == nil && st.Size() > 0
}

// journal is an open journal. It is not safe for concurrent use.
type journal struct {
	path string
	file *os.File
	head []byte // the job's record
	size int64
	buf  []byte
}

// header is a record's kind and the length of what follows.
const header = 5

func appendRecord(b []byte, kind byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// newJournal begins the journal of a run. What an earlier run of the sandbox
// left of its own goes.
func newJournal(folder string, r jobRecord) (*journal, error) {
	r.seal()
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	j := &journal{path: filepath.Join(folder, journalFile), head: appendRecord(nil, kindJob, data)}
	if j.file, err = os.OpenFile(j.path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if st, err := j.file.Stat(); err != nil || st.Size() > 0 {
		if err := errors.Join(err, j.file.Truncate(0)); err != nil {
			return nil, errors.Join(err, j.file.Close())
		}
	}
	if err := j.append(j.head); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

func (j *journal) append(record []byte) error {
	_, err := j.file.WriteAt(record, j.size)
	if err == nil {
		j.size += int64(len(record))
	}
	return err
}

// write adds a record.
func (j *journal) write(kind byte, data []byte) error {
	j.buf = appendRecord(j.buf[:0], kind, data)
	return j.append(j.buf)
}

// end notes how the program ended.
func (j *journal) end(r endRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return j.write(kindEnd, data)
}

// cut replaces the journal by one that begins with a state and goes on with
// what was written from a place on.
func (j *journal) cut(s []byte, from int64) error {
	kept := make([]byte, j.size-from)
	if _, err := j.file.ReadAt(kept, from); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	all := append(appendRecord(slices.Clone(j.head), kindState, s), kept...)
	if _, err = f.Write(all); err == nil {
		err = os.Rename(j.path+".new", j.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.file.Close()
	j.file, j.size = f, int64(len(all))
	return nil
}

// clear says that the run is over and told; the sandbox has none now.
func (j *journal) clear() error { return errors.Join(j.file.Truncate(0), j.file.Close()) }

// rest says that the run is over and told, and that the turn of its job keeps the sandbox.
func (j *journal) rest(r idleRecord) error {
	r.Job.Code, r.Job.Input, r.Job.Env, r.Job.Secrets, r.Job.Web = "", execution.Input{}, nil, nil, nil
	data, err := json.Marshal(r)
	if err == nil {
		err = j.file.Truncate(0)
	}
	if err == nil {
		_, err = j.file.WriteAt(appendRecord(nil, kindIdle, data), 0)
	}
	return errors.Join(err, j.file.Close())
}

// forget empties the journal of a sandbox that is about to be destroyed, so that no process
// takes it over. It has no run.
func forget(folder string) error {
	err := os.Truncate(filepath.Join(folder, journalFile), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (j *journal) close() error { return j.file.Close() }

// maxRecord bounds a record: a job with its code and variables, or a frame.
const maxRecord = 16 << 20

var errTooLong = errors.New("a record is too long")

// openJournal opens the journal that an earlier process left: that of a run, whose further
// records read passes to take, or of an idle sandbox, which has one record.
func openJournal(folder string) (_ *journal, r jobRecord, idle *idleRecord, err error) {
	j := &journal{path: filepath.Join(folder, journalFile)}
	if j.file, err = os.OpenFile(j.path, os.O_RDWR, 0o600); err != nil {
		return nil, r, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("read %s: %w", j.path, err), j.file.Close())
		}
	}()
	if err := os.Remove(j.path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) { // what a cut left
		return nil, r, nil, err
	}
	kind, data, err := j.next()
	if err != nil {
		return nil, r, nil, err
	}
	switch kind {
	case kindIdle:
		idle = new(idleRecord)
		return j, r, idle, json.Unmarshal(data, idle)
	case kindJob:
		err := json.Unmarshal(data, &r)
		r.open()
		j.head = appendRecord(nil, kindJob, data)
		return j, r, nil, err
	}
	return nil, r, nil, errors.New("it does not begin with a job")
}

// next reads the record at size, io.EOF when there is none that is whole. What
// it returns is valid until the next call.
func (j *journal) next() (kind byte, data []byte, err error) {
	var h [header]byte
	if _, err := j.file.ReadAt(h[:], j.size); err != nil {
		return 0, nil, err // io.EOF for a part, too
	}
	n := binary.LittleEndian.Uint32(h[1:])
	if n > maxRecord {
		return 0, nil, fmt.Errorf("%w: %d bytes", errTooLong, n)
	}
	if cap(j.buf) < int(n) {
		j.buf = make([]byte, n)
	}
	data = j.buf[:n]
	if n > 0 {
		if _, err := j.file.ReadAt(data, j.size+header); err != nil {
			return 0, nil, err
		}
	}
	j.size += header + int64(n)
	return h[0], data, nil
}

// read passes every record to take; what is cut short at the end is overwritten
// by what comes next.
func (j *journal) read(take func(kind byte, data []byte) error) error {
	for {
		kind, data, err := j.next()
		if errors.Is(err, io.EOF) {
			return j.file.Truncate(j.size)
		}
		if err != nil {
			return err
		}
		if err := take(kind, data); err != nil {
			return err
		}
	}
}
