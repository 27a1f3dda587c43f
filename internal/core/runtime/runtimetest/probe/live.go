package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Live is what a program says that holds one of everything a checkpoint has to
// bring back.
type Live struct {
	Boot    string // made up when it started
	Ticks   int64  // of a timer
	Heap    string // digest of its memory
	Open    string // what the file holds that it has open
	Deleted string // what the file holds that it has open and that has no name
	Mapped  string // what it sees of a file through memory
	Pair    string // why a connection over loopback, open from the beginning, does not work
	Pipe    string // what was in a pipe
	Far     string // what a connection over the network says
	Random  string // of the kernel, drawn now
	Wall    int64  // the time of day, in nanoseconds
}

// held is what the program holds.
type held struct {
	mu sync.Mutex // held while a client is told

	boot                  string
	ticks                 atomic.Int64
	heap                  []byte
	open, deleted, mapped *os.File
	memory                []byte
	pair                  [2]net.Conn
	far                   net.Conn
	pipe                  [2]*os.File
}

// live DIR PORT MiB [ADDRESS] holds files in a folder, memory, timers and
// connections, and reports on them to each client of the port. For a client of the next
// port it changes its memory first, and a copy of it in a process that it forks.
func live(args []string) error {
	mib, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	h, err := holdEverything(args[0], mib)
	if err != nil {
		return err
	}
	if len(args) > 3 {
		if h.far, err = new(net.Dialer).DialContext(context.Background(), "tcp", args[3]); err != nil {
			return err
		}
	}
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:"+strconv.Itoa(port+i)); err != nil {
			return err
		}
	}
	fmt.Println("live")
	ended := make(chan error)
	for i, l := range listeners {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				if err := h.answer(conn, i > 0); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	return <-ended
}

// answer tells a client, after a change if it is to be.
func (h *held) answer(conn net.Conn, change bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer conn.Close()
	if change {
		if err := h.change(); err != nil {
			return err
		}
	}
	return json.NewEncoder(conn).Encode(h.tell())
}

// change changes a byte of each page of the memory, in a child first.
func (h *held) change() error {
	was := sha256.Sum256(h.heap)
	runtime.LockOSThread()
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
	if errno == 0 && pid == 0 { // the runtime's other threads are not there: nothing but this
		for i := 0; i < len(h.heap); i += os.Getpagesize() {
			h.heap[i]++
		}
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(h.heap[0]), 0, 0)
	}
	runtime.UnlockOSThread()
	if errno != 0 {
		return errno
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &status, 0, nil); err != nil {
		return err
	}
	if sha256.Sum256(h.heap) != was || status.ExitStatus() != int(h.heap[0]+1) {
		return fmt.Errorf("a child that changed its memory ended with %#x, and the memory here is another: %t", status, sha256.Sum256(h.heap) != was)
	}
	for i := 0; i < len(h.heap); i += os.Getpagesize() {
		h.heap[i] ^= 0x55
	}
	return nil
}

// query prints what a live program on a port tells.
func query(args []string) error {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", "127.0.0.1:"+args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

func holdEverything(dir string, mib int) (*held, error) {
	h := &held{boot: random(), heap: make([]byte, mib<<20)}
	for i := 0; i < len(h.heap); i += sha256.Size {
		sum := sha256.Sum256([]byte(h.boot + strconv.Itoa(i)))
		copy(h.heap[i:], sum[:])
	}
	var err error
	for name, f := range map[string]**os.File{"open": &h.open, "deleted": &h.deleted, "mapped": &h.mapped} {
		if *f, err = os.OpenFile(filepath.Join(dir, "live-"+name), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644); err != nil {
			return nil, err
		}
		if _, err := (*f).WriteString(name + " " + h.boot); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(h.deleted.Name()); err != nil {
		return nil, err
	}
	if h.memory, err = unix.Mmap(int(h.mapped.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, err
	}
	if h.pipe[0], h.pipe[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if _, err := h.pipe[1].WriteString(h.boot); err != nil {
		return nil, err
	}
	if h.pair, err = connectPair(); err != nil {
		return nil, err
	}
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			h.ticks.Add(1)
		}
	}()
	return h, nil
}

// connectPair returns both ends of a connection over loopback.
func connectPair() (pair [2]net.Conn, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return pair, err
	}
	defer l.Close()
	if pair[0], err = new(net.Dialer).DialContext(context.Background(), "tcp", l.Addr().String()); err != nil {
		return pair, err
	}
	pair[1], err = l.Accept()
	return pair, err
}

func (h *held) tell() Live {
	sum := sha256.Sum256(h.heap)
	l := Live{
		Boot: h.boot, Ticks: h.ticks.Load(), Heap: hex.EncodeToString(sum[:]), Open: content(h.open), Deleted: content(h.deleted),
		Mapped: string(bytes.TrimRight(h.memory, "\x00")), Random: random(), Wall: time.Now().UnixNano(),
	}
	if err := pingPong(h.pair); err != nil {
		l.Pair = err.Error()
	}
	if h.far != nil {
		_ = h.far.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := h.far.Read(make([]byte, 1))
		l.Far = errorName(err)
	}
	buf := make([]byte, len(h.boot))
	if _, err := io.ReadFull(h.pipe[0], buf); err != nil {
		l.Pipe = err.Error()
	}
	if _, err := h.pipe[1].Write(buf); err != nil {
		l.Pipe = err.Error()
	}
	l.Pipe += string(buf)
	return l
}

func content(f *os.File) string {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func pingPong(pair [2]net.Conn) error {
	for i := range pair {
		a, b := pair[i], pair[1-i]
		if err := b.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := a.Write([]byte("ping")); err != nil {
			return err
		}
		buf := make([]byte, 4)
		if _, err := io.ReadFull(b, buf); err != nil {
			return err
		}
	}
	return nil
}

func random() string {
	var b [16]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		fail(err)
	}
	return hex.EncodeToString(b[:])
}
