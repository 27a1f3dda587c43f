package executor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// Kinds of records in the file of waiting jobs.
const (
	kindTaken = 'j' // a job was taken on
	kindBegun = 'b' // it has a journal, or its Result is stored
	kindLast  = 0   // nothing follows
)

// last ends the file. Each record overwrites it and brings one of its own:
// cutting the file short takes a hundred times as long.
var last [header]byte

// waiting is the file of the jobs that were taken on and have no journal yet. A
// job is in it before its gateway is told that it was taken on, so that a process
// that dies loses none: nothing of such a job was run, and the next process runs
// it. The zero waiting keeps nothing.
type waiting struct {
	path string // "" for none

	mu    sync.Mutex
	file  *os.File
	size  int64             // guarded by mu
	jobs  map[string][]byte // guarded by mu; the records of those that wait
	bytes int64             // guarded by mu; of these records
	buf   []byte            // guarded by mu
}

// maxWaiting is how large the file may become before what no longer waits is
// left out of it.
const maxWaiting = 16 << 20

// openWaiting opens the file and returns the jobs that an earlier process left,
// in the order they came.
//
// A record that cannot be read is left out and counted.
func openWaiting(path string) (_ *waiting, left []jobRecord, unreadable int, err error) {
	if path == "" {
		return &waiting{}, nil, 0, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("the jobs that wait: %w", err), file.Close())
		}
	}()
	j := journal{file: file}
	begun := map[string]bool{}
	for {
		kind, data, err := j.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTooLong) { // the last one is torn, and what was there before follows
			break
		}
		if err == nil && kind == kindLast {
			j.size -= header
			break
		}
		if err != nil {
			return nil, nil, 0, err
		}
		if kind == kindBegun {
			begun[string(data)] = true
			continue
		}
		if len(data) < 4 || binary.LittleEndian.Uint32(data) != crc32.ChecksumIEEE(data[4:]) {
			j.size -= header + int64(len(data)) // half of it was written, over what was there before
			break
		}
		var r jobRecord
		if json.Unmarshal(data[4:], &r) != nil {
			unreadable++ // a later version wrote it, or the disk failed
			continue
		}
		r.open()
		left = append(left, r)
	}
	if err := file.Truncate(j.size); err != nil { // what is behind the end is of jobs that are gone
		return nil, nil, 0, err
	}
	w := &waiting{path: path, file: file, size: j.size, jobs: map[string][]byte{}}
	kept := left[:0]
	for _, r := range left {
		if begun[r.Job.TraceID] || w.jobs[r.Job.TraceID] != nil {
			continue
		}
		kept = append(kept, r)
		record, err := w.encode(r)
		if err != nil {
			return nil, nil, 0, err
		}
		w.keep(r.Job.TraceID, record)
	}
	return w, kept, unreadable, nil
}

// keep remembers a record. w.mu is held, or no other goroutine has w yet.
func (w *waiting) keep(traceID string, record []byte) {
	w.jobs[traceID] = record
	w.bytes += int64(len(record))
}

// encode returns the record of a job; it is made before any lock is taken.
func (w *waiting) encode(r jobRecord) ([]byte, error) {
	if w.path == "" {
		return nil, nil
	}
	r.seal()
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	sum := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	return append(appendRecord(nil, kindTaken, sum, data), last[:]...), nil
}

// add notes a job that encode has made a record of.
func (w *waiting) add(traceID string, record []byte) error {
	if w.path == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// First, so that a job that is refused for its failure is not in the file.
	if w.size > maxWaiting && w.size > 2*w.bytes {
		if err := w.compact(); err != nil {
			return err
		}
	}
	if _, err := w.file.WriteAt(record, w.size); err != nil {
		return err
	}
	w.size += int64(len(record) - header)
	w.keep(traceID, record)
	return nil
}

// compact writes the file anew, with what still waits.
func (w *waiting) compact() error {
	file, err := os.OpenFile(w.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	var size int64
	for _, record := range w.jobs {
		_, werr := file.WriteAt(record, size)
		size, err = size+int64(len(record)-header), errors.Join(err, werr)
	}
	if err == nil {
		err = os.Rename(w.path+".new", w.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	old := w.file
	w.file, w.size = file, size
	return old.Close()
}

// remove notes that a job waits no more. With the last job the file begins anew.
func (w *waiting) remove(traceID string) error {
	if w.path == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= int64(len(w.jobs[traceID]))
	delete(w.jobs, traceID)
	if len(w.jobs) == 0 {
		return w.erase()
	}
	w.buf = append(appendRecord(w.buf[:0], kindBegun, []byte(traceID)), last[:]...)
	if _, err := w.file.WriteAt(w.buf, w.size); err != nil {
		return err
	}
	w.size += int64(len(w.buf) - header)
	return nil
}

// zeros are written over what no longer waits. They read as the end of the file.
var zeros [64 << 10]byte

// erase begins the file anew. What the jobs were does not stay on disk: a tenant may have
// its code, and what it says, deleted.
func (w *waiting) erase() error {
	for at, end := int64(0), w.size+header; at < end; at += int64(len(zeros)) {
		if _, err := w.file.WriteAt(zeros[:min(int64(len(zeros)), end-at)], at); err != nil {
			return err
		}
		w.size = 0 // the first zeros end it
	}
	return nil
}

// close may be repeated.
func (w *waiting) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.path == "" {
		return nil
	}
	w.path = ""
	return w.file.Close()
}
