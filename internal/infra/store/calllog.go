package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// callLog is the file of a log of calls: a head, and one record after the other.
//
//	head    magic, the name of what stands in the file, the name of what stood
//	        in it before, and their CRC-32
//	record  the length of the call, the CRC-32 of what follows, the time in µs
//	        since 1970, the call as JSON
//
// Each is written at once, so that all a killed process can leave is a last one
// that is cut short, which nobody has acted upon. It is not safe for concurrent use.
type callLog struct {
	file        *os.File
	name, after logName
	size        int64 // 0 while the head is to be written
	buf         []byte
}

type logName [16]byte

const (
	logMagic  = "atollcl\x01"
	logHead   = len(logMagic) + 2*len(logName{}) + 4
	callHead  = 4 + 4 + 8
	maxLogged = 1 << 20 // bytes of a call
)

var (
	errLogInUse   = errors.New("another process has the log of calls open")
	errForeignLog = errors.New("the log of calls belongs to another database")
)

// openCallLog opens the log at path, which is made if there is none, and returns
// what it holds that is not in a database that has got as far as place in the log
// of that name. It has to be begun anew before anything is appended.
func openCallLog(path string, name logName, place int64) (l *callLog, left []logged, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		return nil, nil, errLogInUse
	} else if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, err
	}
	l = &callLog{file: f, name: name}
	is, after, ok := parseHead(data)
	switch {
	case !ok: // nothing was ever acted upon
		return l, nil, nil
	case is == name:
	case after == name: // it was begun anew, and nothing of that is in the database
		l.name, place = is, int64(logHead)
	default:
		return nil, nil, errForeignLog
	}
	l.after = after
	left, l.size, err = parseCalls(data, max(place, int64(logHead)))
	return l, left, err
}

func parseHead(data []byte) (name, after logName, ok bool) {
	if len(data) < logHead || !bytes.HasPrefix(data, []byte(logMagic)) {
		return name, after, false
	}
	names, sum := data[len(logMagic):logHead-4], data[logHead-4:]
	copy(name[:], names)
	copy(after[:], names[len(name):])
	return name, after, binary.LittleEndian.Uint32(sum) == crc32.ChecksumIEEE(names)
}

// parseCalls returns the calls from a place on, and where the last whole one ends.
func parseCalls(data []byte, at int64) (all []logged, end int64, err error) {
	for at < int64(len(data))-int64(callHead) {
		head := data[at:][:callHead]
		n := int64(binary.LittleEndian.Uint32(head))
		next := at + int64(callHead) + n
		if n > maxLogged || next > int64(len(data)) {
			break
		}
		if binary.LittleEndian.Uint32(head[4:]) != crc32.ChecksumIEEE(data[at+8:next]) {
			break
		}
		c := &call{}
		if err := json.Unmarshal(data[at+int64(callHead):next], c); err != nil {
			return nil, 0, fmt.Errorf("the call at byte %d cannot be read, another version of Atoll may have written it: %w", at, err)
		}
		c.At = time.UnixMicro(int64(binary.LittleEndian.Uint64(head[8:]))).UTC()
		at = next
		all = append(all, logged{c, at})
	}
	return all, at, nil
}

// append adds a call, whose JSON has no more than maxLogged bytes, and returns
// where it ends.
func (l *callLog) append(at time.Time, data []byte) (end int64, err error) {
	b := l.buf[:0]
	if l.size == 0 {
		b = append(b, logMagic...)
		b = append(append(b, l.name[:]...), l.after[:]...)
		b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[len(logMagic):]))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	sum := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(at.UnixMicro()))
	b = append(b, data...)
	binary.LittleEndian.PutUint32(b[sum:], crc32.ChecksumIEEE(b[sum+4:]))
	l.buf = b
	if _, err := l.file.WriteAt(b, l.size); err != nil {
		return 0, err // what was written of it is overwritten by the next
	}
	l.size += int64(len(b))
	return l.size, nil
}

// anew begins the file anew. All that stands in it is in the database, which knows
// it by the name after.
func (l *callLog) anew(name, after logName) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	l.name, l.after, l.size = name, after, 0
	return nil
}

func (l *callLog) close() error { return l.file.Close() }
