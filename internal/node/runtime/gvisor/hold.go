package gvisor

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// heldBack is how many bytes of where pages belong a kernel does not get before its
// memory was found whole. It waits for them ahead of running anything.
const heldBack = 1

// held is what a kernel is not told yet.
type held struct {
	in      *os.File   // of the pipe that the kernel reads from
	written chan error // nil if the kernel was told all
}

// hold has a kernel read where its pages belong from a pipe, which ends too early
// unless whole finds its memory so.
func hold(files []*os.File, whole func() error) (*held, error) {
	places := &files[1]
	all, err := io.ReadAll(*places)
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	replaced := *places
	*places = out
	h := &held{in, make(chan error, 1)}
	go func() { // ends with whole, and with who reads
		defer in.Close()
		rest := max(0, len(all)-heldBack)
		_, err := in.Write(all[:rest])
		if no := whole(); no != nil {
			err = no
		} else if err == nil {
			_, err = in.Write(all[rest:])
		}
		h.written <- err
	}()
	if err := replaced.Close(); err != nil {
		return h, err
	}
	return h, unix.SetNonblock(int(out.Fd()), false) // the kernel waits for what is to come
}

// end waits for whole, and says what that said. A kernel that has failed reads no
// more.
func (h *held) end(failed error) error {
	if h == nil {
		return failed
	}
	if failed != nil {
		h.in.Close()
	}
	if err := <-h.written; err != nil {
		return err
	}
	return failed
}
