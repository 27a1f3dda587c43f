package guestinit

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// visitor is a connection to the door, which has one request.
type visitor struct {
	fd     int
	state  state
	until  time.Time // when it is given up, unless it gets on
	in     []byte    // of the request
	size   int       // of all of it; 0 before its head has come
	number uint64    // by which the host knows it
	out    []byte    // what is left of the response
}

// state is how far a visitor has come.
type state uint8

const (
	receiving state = iota
	received        // whole, but the host was not asked yet
	waiting         // for the host
	answering
	lingering // all is written; closing at once could take it away from one that still sends
)

const (
	sendTime   = 30 * time.Second
	answerTime = 2 * time.Minute // longer than a host takes
	readTime   = 30 * time.Second
	lingerTime = time.Second
	maxHead    = 16 << 10
)

func (v *visitor) close() {
	if v.fd >= 0 {
		raw.Close(v.fd)
		v.fd, v.in, v.out = -1, nil, nil
	}
}

// read takes one read's worth of the request, or drops what comes after it.
func (v *visitor) read() {
	var b [4096]byte
	n, err := raw.Read(v.fd, b[:])
	switch {
	case err == unix.EAGAIN:
	case err != nil || n == 0:
		v.close()
	case v.state == receiving:
		v.in = append(v.in, b[:n]...)
		v.parse()
	}
}

// parse looks whether the request is whole.
func (v *visitor) parse() {
	if v.size == 0 {
		end := bytes.Index(v.in, []byte("\r\n\r\n"))
		switch {
		case end < 0 && len(v.in) <= maxHead:
			return
		case end < 0 || end > maxHead:
			v.refuse("431 Request Header Fields Too Large", "header_too_large", "the head of a request has at most 16 KiB")
			return
		}
		body, problem := bodySize(string(v.in[:end]))
		if problem != "" {
			v.refuse("411 Length Required", "length_required", problem)
			return
		}
		if body > wire.MaxAsk || end+4+body > wire.MaxAsk {
			v.refuse("413 Content Too Large", "payload_too_large", "a request has at most "+strconv.Itoa(wire.MaxAsk>>10)+" KiB")
			return
		}
		v.size = end + 4 + body
	}
	if len(v.in) >= v.size {
		v.in, v.state = v.in[:v.size], received
		v.until = time.Now().Add(answerTime)
	}
}

// bodySize is how long the body is of a request with a head.
func bodySize(head string) (size int, problem string) {
	seen := false
	for _, line := range strings.Split(head, "\r\n")[1:] {
		name, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) {
		case "transfer-encoding":
			return 0, "send the body with Content-Length, not in chunks"
		case "content-length":
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
			if err != nil || seen && int(n) != size {
				return 0, "Content-Length must be one number"
			}
			size, seen = int(n), true
		}
	}
	return size, ""
}

// answer begins to write a response.
func (v *visitor) answer(response []byte) {
	v.in, v.out, v.state, v.until = nil, response, answering, time.Now().Add(readTime)
	v.write()
}

func (v *visitor) write() {
	for len(v.out) > 0 {
		n, err := send(v.fd, v.out)
		if err == unix.EAGAIN {
			return
		}
		if err != nil {
			v.close()
			return
		}
		v.out, v.until = v.out[n:], time.Now().Add(readTime)
	}
	if unix.Shutdown(v.fd, unix.SHUT_WR) != nil {
		v.close()
		return
	}
	v.out, v.state, v.until = nil, lingering, time.Now().Add(lingerTime)
}

// refuse answers without the host.
func (v *visitor) refuse(status, code, message string) {
	body := `{"error":"` + code + `","message":"` + message + `"}`
	v.answer([]byte("HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nConnection: close\r\n\r\n" + body))
}
