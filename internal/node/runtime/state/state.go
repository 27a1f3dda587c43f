// Package state is the folder in which a runtime keeps its sandboxes, one
// folder each, so that a later process finds and takes over, or sweeps, what an
// earlier one left.
package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
)

// Record is what is kept of a sandbox beside its FIFOs. Pid is zero until the
// sandbox process is known.
type Record struct {
	Spec  runtime.Spec
	Pid   int
	Start uint64 // the process's start time in clock ticks: a pid alone may belong to another process by now
	// Born is the id that the sandbox's processes were started with, if that is
	// another one: their arguments and their control group have it.
	Born runtime.ID `json:",omitzero"`
}

// Origin is the id that the sandbox's processes were started with.
func (r Record) Origin() runtime.ID { return cmp.Or(r.Born, r.Spec.ID) }

// Dir is a runtime's state folder. One process owns it at a time.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the folder if needed and takes its lock.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := own(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s is in use by another process: %w", path, err)
	}
	return &Dir{path: path, lock: lock}, nil
}

// own takes a lock file's lock and puts this process's name in. A child that its
// owner was about to start holds the lock for a moment longer than an owner that
// was killed: only for such a one is waited.
func own(lock *os.File) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for giveUp := time.Now().Add(5 * time.Second); ; <-tick.C {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		var pid int
		var start uint64
		name := make([]byte, 64)
		n, _ := lock.ReadAt(name, 0) // the end of the file is no error
		if _, scan := fmt.Sscan(string(name[:n]), &pid, &start); scan != nil || Lives(pid, start) || time.Now().After(giveUp) {
			return err
		}
	}
	start, err := StartTime(os.Getpid())
	if err != nil {
		return err
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = lock.WriteAt(fmt.Appendf(nil, "%d %d\n", os.Getpid(), start), 0)
	return err
}

// Close releases the lock.
func (d *Dir) Close() error { return d.lock.Close() }

// Path returns the folder of a sandbox, joined with elem.
func (d *Dir) Path(id runtime.ID, elem ...string) string {
	return filepath.Join(append([]string{d.path, string(id)}, elem...)...)
}

// Create makes a sandbox's folder with its FIFOs and record.
func (d *Dir) Create(spec runtime.Spec) (err error) {
	if !spec.ID.Valid() {
		return fmt.Errorf("sandbox id %q is not valid", spec.ID)
	}
	if err := os.Mkdir(d.Path(spec.ID), 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Remove(spec.ID))
		}
	}()
	for _, name := range []string{fifoIn, fifoOut} {
		if err := unix.Mkfifo(d.Path(spec.ID, name), 0o600); err != nil {
			return fmt.Errorf("make fifo: %w", err)
		}
	}
	return d.Write(Record{Spec: spec})
}

const (
	recordFile = "sandbox.json"
	fifoIn     = "to-guest"
	fifoOut    = "from-guest"
)

// Write replaces a sandbox's record.
func (d *Dir) Write(r Record) error {
	return d.write(r.Spec.ID, r)
}

func (d *Dir) write(id runtime.ID, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := d.Path(id, recordFile)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Rename makes the folder of a sandbox, which was started with another id, that of
// the sandbox on record.
func (d *Dir) Rename(r Record) error {
	if err := d.write(r.Born, r); err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, d.Path(r.Born), unix.AT_FDCWD, d.Path(r.Spec.ID), unix.RENAME_NOREPLACE)
}

// Read returns a sandbox's record; runtime.ErrNotFound when there is none or a
// crash left it unfinished.
func (d *Dir) Read(id runtime.ID) (Record, error) {
	var r Record
	if !id.Valid() {
		return r, runtime.ErrNotFound
	}
	data, err := os.ReadFile(d.Path(id, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, runtime.ErrNotFound
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, runtime.ErrNotFound
	}
	return r, nil
}

// List returns the ids of all sandbox folders.
func (d *Dir) List() ([]runtime.ID, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var ids []runtime.ID
	for _, e := range entries {
		if id := runtime.ID(e.Name()); e.IsDir() && id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Infos describes all sandboxes, and the remains of one after a crash: a folder, or a control group below
// groups, which may be nil.
func (d *Dir) Infos(groups *cgroup.Parent) ([]runtime.Info, error) {
	ids, err := d.List()
	if err != nil {
		return nil, err
	}
	known := map[runtime.ID]bool{}
	var infos []runtime.Info
	for _, id := range ids {
		known[id] = true
		info := runtime.Info{ID: id}
		if rec, err := d.Read(id); err == nil {
			known[rec.Origin()] = true
			info.Labels = rec.Spec.Labels
			if p, err := OpenProcess(rec); err == nil {
				info.Alive = true
				p.Close()
			}
		}
		infos = append(infos, info)
	}
	if groups == nil {
		return infos, nil
	}
	// A crash between the two steps of Destroy leaves a group without a folder.
	names, err := groups.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if id := runtime.ID(name); id.Valid() && !known[id] {
			infos = append(infos, runtime.Info{ID: id})
		}
	}
	return infos, nil
}

// Tail returns the end of a log file, for an error message.
func Tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "no log at " + filepath.Base(path)
	}
	const most = 600
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return strings.TrimSpace(string(data))
}

// Remove deletes a sandbox's folder.
func (d *Dir) Remove(id runtime.ID) error {
	if !id.Valid() {
		return fmt.Errorf("sandbox id %q is not valid", id)
	}
	return os.RemoveAll(d.Path(id))
}

// pipeSize is how much a FIFO holds: a burst of output passes without the
// guest having to wait for the host. Unprivileged users may not ask for more.
const pipeSize = 1 << 20

// OpenChannel opens the host's ends of a sandbox's FIFOs.
func (d *Dir) OpenChannel(id runtime.ID) (runtime.Channel, error) {
	in, err := openFIFO(d.Path(id, fifoIn))
	if err != nil {
		return runtime.Channel{}, err
	}
	out, err := openFIFO(d.Path(id, fifoOut))
	if err != nil {
		in.Close()
		return runtime.Channel{}, err
	}
	return runtime.Channel{ToGuest: in, FromGuest: out}, nil
}

func openFIFO(path string) (*os.File, error) {
	// Read-write, so that the pipe lives as long as either side has it open
	// and neither sees EOF when the other is replaced. Non-blocking, so that
	// deadlines work.
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// Over the user's pipe quota the kernel says EPERM; the default size works too.
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETPIPE_SZ, pipeSize)
	_ = unix.SetNonblock(int(f.Fd()), true) // Fd made it blocking
	return f, nil
}

// OpenStdio opens the guest's ends, to be given to the sandbox as its standard
// input and output. They block: the guest knows nothing of the host's mode.
func (d *Dir) OpenStdio(id runtime.ID) (stdin, stdout *os.File, err error) {
	stdin, err = os.OpenFile(d.Path(id, fifoIn), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	stdout, err = os.OpenFile(d.Path(id, fifoOut), os.O_RDWR, 0)
	if err != nil {
		stdin.Close()
		return nil, nil, err
	}
	return stdin, stdout, nil
}
