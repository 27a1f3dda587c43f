package daemon

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// spare keeps one bash that was started ahead for the next command, since to start
// one takes milliseconds here. It was started as the ordinary one is, with blanks
// where the command goes, and waits at the last point before it runs that: what it
// reads as BASH_ENV has it read a pipe. Used, it gets the command into its memory
// and by the pipe what else is different. What cannot be made the same is started
// anew.
//
// It knows no variable but those that every program has, for others could read
// them. It lives as long as a host is there: nothing of it is in a checkpoint.
type spare struct {
	mu    sync.Mutex
	hosts int         // guarded by mu; that are there: at most one, and those that are going
	is    *waiting    // guarded by mu; nil for none
	timer *time.Timer // guarded by mu; makes the next one
	next  shape       // guarded by mu; what that is to be
	known variables   // guarded by mu; those of the last command
}

// variables are those of a command, as a spare is given them.
type variables struct {
	all       []string
	base, own []string // those that it is started with, sorted, and the others
	ok        bool     // it can be given them
}

// shape is what a shell is started with and keeps.
type shape struct {
	dir   string
	base  []string // variables, sorted
	limit int      // of open files
	path  string   // of bash, which stays where it is
	own   []string // the other variables: what it is made ready for, and may not come
}

func (s shape) equal(t shape) bool {
	return s.dir == t.dir && s.limit == t.limit && slices.Equal(s.base, t.base)
}

// waiting is a bash that waits.
type waiting struct {
	*pump
	shape
	folder unix.Statx_t // what dir was
	at     uintptr      // where its command goes
	script int          // what it reads first
	begin  []byte       // of that, with own
	end    []byte       // of that
}

const (
	maxSpareCommand = 8 << 10  // bytes of a command
	maxSpareScript  = 32 << 10 // bytes of what makes it the shell that was asked for
	warmFD          = 3        // what it reads as BASH_ENV
	scriptFD        = 4
	// spareQuiet is how long nobody has started anything when one is made.
	spareQuiet = 10 * time.Millisecond
)

var blanks = strings.Repeat(" ", maxSpareCommand)

// everywhere are the variables that a spare is started with: they are no secrets,
// and some are read once.
var everywhere = []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TZ", "USER"}

// special are names that mean something to bash or the dynamic linker other than
// a variable for programs, or that bash sets when it starts.
var special = regexp.MustCompile(`^(_|[A-Z]*ENV|BASH.*|CHILD_MAX|COLUMNS|COMP_.*|COPROC|DIRSTACK|EPOCH.*|EUID|EXECIGNORE|FCEDIT|FIGNORE|FUNC.*|GCONV_PATH|GLIBC.*|GLOB.*|GROUPS|HIST.*|HOST.*|IFS|IGNOREEOF|INPUTRC|` +
	`LANGUAGE|LC_.*|LD_.*|LINENO|LINES|LOCPATH|MACHTYPE|MAIL.*|MALLOC_.*|MAPFILE|NLSPATH|OLDPWD|OPT.*|OSTYPE|PIPESTATUS|POSIX.*|PPID|PROMPT.*|PS[0-9]|PWD|RANDOM|READLINE.*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|TERM|TEXTDOMAIN.*|TIMEFORMAT|TMOUT|UID)$`)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// split divides variables into those of every program and the others. It reports
// whether a spare can be given them.
func split(env []string) (base, own []string, ok bool) {
	seen := make(map[string]bool, len(env))
	for _, v := range env {
		name, _, is := strings.Cut(v, "=")
		switch {
		case !is || seen[name] || !identifier.MatchString(name):
			return nil, nil, false
		case slices.Contains(everywhere, name):
			base = append(base, v)
		case special.MatchString(name):
			return nil, nil, false
		default:
			own = append(own, v)
		}
		seen[name] = true
	}
	slices.Sort(base)
	return base, own, true
}

// shapeOf is the shape of a shell that a spare could be, without the path.
func (a *attendant) shapeOf(q *proto.Start, cmd *wire.Command) (is shape, ok bool) {
	if q.Shell == nil || q.Input || q.Terminal != nil || q.Control || len(*q.Shell) >= maxSpareCommand || confine.Needed(&a.rules) {
		return is, false
	}
	v := a.spare.split(cmd.Env)
	return shape{dir: cmd.Dir, base: v.base, limit: q.OpenFiles, own: v.own}, v.ok
}

// split is split, which takes a while, for what most often comes again.
func (s *spare) split(env []string) variables {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.all == nil || !slices.Equal(s.known.all, env) {
		base, own, ok := split(env)
		s.known = variables{env, base, own, ok}
	}
	return s.known
}

// warm has a spare do the like of what it will have to do when it has its command:
// what is done for the first time takes longer. What that changes is set again. The
// last line is for $_.
var warm = fmt.Sprintf(`exec %d<&-
unset -v BASH_ENV
export BASH_ENV='it'\''s'
unset -v BASH_ENV
BASH_EXECUTION_STRING=''
RANDOM=1
SECONDS=0
: "${BASH##*/}"
true
. /proc/self/fd/%d
: "${BASH##*/}"
`, warmFD, scriptFD)

// open says that a host is there.
func (s *spare) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts++
}

// close says that a host has gone, and ends what waits: after the last one nothing
// of it is left.
func (s *spare) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts--; s.hosts > 0 {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.drop()
}

// drop ends what waits. s.mu is held.
func (s *spare) drop() {
	if s.is != nil {
		shut(s.is.script)
		s.is.discard()
		s.is = nil
	}
}

// take returns the pump of a spare that now is the shell of that shape, or nil.
func (a *attendant) take(p *process, is *shape, command string) *pump {
	s := &a.spare
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && s.is == nil {
		s.timer.Reset(spareQuiet)
	}
	w := s.is
	if w == nil {
		return nil
	}
	st, err := standsAt(is.dir)
	if !is.equal(w.shape) || err != nil || st.Ino != w.folder.Ino || st.Dev_major != w.folder.Dev_major || st.Dev_minor != w.folder.Dev_minor {
		s.drop()
		return nil
	}
	// The way to the user's home is root's; any other the user may have closed.
	if (is.dir != wire.Home || st.Mode != w.folder.Mode || st.Uid != w.folder.Uid || st.Gid != w.folder.Gid) && asUser(func() error { return entered(is.dir) }) != nil {
		return nil
	}
	begin := w.begin
	if !slices.Equal(is.own, w.own) {
		begin = beginning(is.own)
	}
	script := append(fmt.Appendf(slices.Clip(begin), "BASH_EXECUTION_STRING=%s\n", quote(command)), w.end...)
	if len(script) > maxSpareScript {
		return nil
	}
	s.is, is.path = nil, w.path
	text := make([]byte, maxSpareCommand)
	copy(text, command)
	err = poke(w.pid, w.at, text)
	if err == nil {
		_, err = raw.Write(w.script, script)
	}
	shut(w.script)
	if err != nil { // somebody has ended it
		w.discard()
		return nil
	}
	p.pid = w.pid
	w.process, w.ahead = p, true
	return w.pump
}

// beginning is what a spare reads before its command, and ending after it.
func beginning(own []string) []byte {
	b := fmt.Appendf(nil, "unset -v BASH_ENV\nexec %d<&-\n", scriptFD)
	for _, v := range own {
		name, value, _ := strings.Cut(v, "=")
		b = fmt.Appendf(b, "export %s=%s\n", name, quote(value))
	}
	return b
}

func ending() []byte {
	var seed [4]byte
	rand.Read(seed[:])
	return fmt.Appendf(nil, "RANDOM=%d\nSECONDS=0\n", binary.LittleEndian.Uint32(seed[:]))
}

// quote writes a text as bash reads it.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// another has a spare of this shape made when nobody has started anything for a
// while.
func (a *attendant) another(is shape) {
	s := &a.spare
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == 0 || s.is != nil {
		return
	}
	s.next = is
	if s.timer == nil {
		s.timer = time.AfterFunc(spareQuiet, a.makeSpare)
	} else {
		s.timer.Reset(spareQuiet)
	}
}

// makeSpare makes one. Where that fails, commands are started as ever.
func (a *attendant) makeSpare() {
	s := &a.spare
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts > 0 && s.is == nil {
		s.is, _ = a.newSpare(s.next)
	}
}

func (a *attendant) newSpare(is shape) (_ *waiting, err error) {
	w := &waiting{shape: is, script: -1, begin: beginning(is.own), end: ending()}
	if w.pump, err = newPump(&process{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			if w.script >= 0 {
				shut(w.script)
			}
			w.discard()
		}
	}()
	var child files
	err = asUser(func() (err error) {
		if child, err = w.openPipes(false); err != nil {
			return err
		}
		first, text, err := pipe()
		if err != nil {
			return err
		}
		child = append(child, first)
		_, err = raw.Write(text, []byte(warm))
		shut(text)
		if err != nil {
			return err
		}
		r, script, err := pipe()
		if err == nil {
			child, w.script = append(child, r), script
			err = unix.SetNonblock(script, true)
		}
		return err
	})
	if err == nil {
		cmd := &wire.Command{
			Path: is.path, Argv: []string{"bash", "-c", "--", blanks}, Dir: is.dir,
			Env: append(slices.Clone(is.base), "BASH_ENV=/proc/self/fd/"+strconv.Itoa(warmFD)),
		}
		err = a.fork(w.pump, cmd, child.of(), false, is.limit)
	}
	child.close()
	if err != nil {
		return nil, err
	}
	if w.folder, err = standsAt("/proc/" + strconv.Itoa(w.pid) + "/cwd"); err != nil {
		return nil, err
	}
	for i := range watched { // so that this is done by the time it counts
		w.hold(i, true)
	}
	w.at, err = findBlanks(w.pid)
	return w, err
}

// findBlanks finds where the arguments of a process have the blanks: in its stack.
func findBlanks(pid int) (uintptr, error) {
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "[stack]") {
			continue
		}
		from, rest, _ := strings.Cut(line, "-")
		to, _, _ := strings.Cut(rest, " ")
		first, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || end <= first {
			break
		}
		top := make([]byte, min(end-first, 64<<10))
		local := []unix.Iovec{{Base: &top[0]}}
		local[0].SetLen(len(top))
		n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(end) - uintptr(len(top)), Len: len(top)}}, 0)
		if err != nil {
			return 0, err
		}
		mark := append(append([]byte("bash\x00-c\x00--\x00"), blanks...), 0)
		if i := bytes.LastIndex(top[:n], mark); i >= 0 {
			return uintptr(end) - uintptr(len(top)) + uintptr(i+bytes.IndexByte(mark, ' ')), nil
		}
	}
	return 0, unix.ESRCH
}
