package guestinit

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// hooks is the folder of the hook files: sandbox.GuestDir.
const hooks = "/.atoll"

// hookState is what a waiting interpreter does not know of.
type hookState struct {
	restored bool     // the checkpoint that it was restored from has other forks
	moved    bool     // its working directory is another folder now
	stdin    bool     // it reads stdinFile
	args     []string // arguments that follow those it was started with
}

// prepare makes the interpreter come upon its hook and returns its variables.
func (w *warmed) prepare(m *wire.WarmMessage, control int) ([]string, error) {
	name := w.hook.Variable
	switch {
	case name == "":
		return w.prepareSite(m, control)
	case slices.ContainsFunc(m.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }):
		return nil, failure(name + " is needed for the hook")
	}
	return append(slices.Clone(m.Env), name+"="+w.hook.Prefix+hooks+"/"+w.hook.Hook), nil
}

// message tells the hook what changes between two sets of variables, and what else has
// changed since the interpreter started.
func (w *warmed) message(old, env []string, is hookState) ([]byte, error) {
	if w.hook.Script {
		return scriptMessage(old, env, is)
	}
	return binaryMessage(old, env, is)
}

// prepareSite writes a .pth file, whose lines that begin with "import" Python
// runs in the middle of its start-up. It names the pipe it is meant for, so that
// another Python that comes by in the meantime passes over it.
func (w *warmed) prepareSite(m *wire.WarmMessage, control int) ([]string, error) {
	if !strings.HasPrefix(m.Site, "/") {
		return nil, failure("the site folder must be an absolute path: " + m.Site)
	}
	for _, name := range m.Preload {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return nil, failure("not a module's name: " + strconv.Quote(name))
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(control, &st); err != nil {
		return nil, step("control pipe", err)
	}
	made := ""
	for i := 1; i <= len(m.Site); i++ {
		if i < len(m.Site) && m.Site[i] != '/' {
			continue
		}
		if err := unix.Mkdir(m.Site[:i], 0o755); err == nil {
			w.undo = slices.Insert(w.undo, 0, m.Site[:i])
			made = m.Site
		}
	}
	w.site.note(m.Site)
	path := m.Site + "/zzz-atoll.pth"
	unix.Unlink(path)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, step("write "+path, err)
	}
	w.undo = slices.Insert(w.undo, 0, path)
	// Nothing may be left behind, not even a warning of a file left open, which
	// Python would note down in the module that executes this.
	file := `'` + hooks + `/` + w.hook.Hook + `'`
	line := `import sys; exec("with open(` + file + `, 'rb') as f: code = f.read()\nexec(compile(code, ` + file + `, 'exec'), {'inode': ` +
		strconv.FormatUint(st.Ino, 10) + `, 'made': made, 'fork': ` + python(w.fork) + `, 'preload': '` + strings.Join(m.Preload, " ") + `'})", {"made": ` + strconv.Quote(made) + "})\n"
	_, err = unix.Write(fd, []byte(line))
	if e := unix.Close(fd); err == nil {
		err = e
	}
	w.site.restore()
	return m.Env, step("write "+path, err)
}

func python(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// siteTimes are the times of the site folder. Python lists a folder again when
// its time of change is another than before, which would come to milliseconds
// just when the program is waited for; so the file comes and goes unnoticed.
type siteTimes struct {
	path  string
	times [2]unix.Timespec
}

func (t *siteTimes) note(path string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil {
		*t = siteTimes{path, [2]unix.Timespec{st.Atim, st.Mtim}}
	}
}

func (t *siteTimes) restore() {
	if t.path != "" {
		unix.UtimesNanoAt(unix.AT_FDCWD, t.path, t.times[:], 0)
	}
}

// Flags that begin a binary message.
const (
	changed    = 1 << iota // the variables follow
	mustReseed             // random generators must be reseeded
	touch                  // no program yet: map the memory in, and wait on
	moved                  // go to the working directory's path again
	argued                 // arguments follow, ahead of the variables
	stdin                  // read stdinFile
)

// A hook takes the message that lets it go on in two reads at least. The kernel
// makes the first of them for an interpreter that has been killed but has not run
// since, so only the second shows that it has come back to life. firstRead is the
// most that warm.py and warm.cjs take at first; warm.bash takes a line.
const firstRead = 256

// binaryMessage is what warm.py and warm.cjs read: the length of the rest in
// four bytes, flags, the number of further arguments and each of them, if there are
// any, and every variable, all of these with a NUL behind them. It is longer than
// firstRead.
func binaryMessage(old, env []string, is hookState) ([]byte, error) {
	msg := []byte{0, 0, 0, 0, 0}
	if is.restored {
		msg[4] |= mustReseed
	}
	if is.moved {
		msg[4] |= moved
	}
	if is.stdin {
		msg[4] |= stdin
	}
	if len(is.args) > 0 {
		msg[4] |= argued
		msg = append(strconv.AppendInt(msg, int64(len(is.args)), 10), 0)
		for _, arg := range is.args {
			msg = append(append(msg, arg...), 0)
		}
	}
	if slices.Equal(old, env) {
		msg = append(msg, make([]byte, firstRead)...) // which nothing looks at
	} else {
		if len(env) == 0 {
			return nil, failure("no variables to fill a message with")
		}
		msg[4] |= changed
		for once := true; once || len(msg) <= firstRead; once = false { // setting one twice is as good as once
			for _, kv := range env {
				msg = append(append(msg, kv...), 0)
			}
		}
	}
	binary.LittleEndian.PutUint32(msg, uint32(len(msg)-4))
	return msg, nil
}

// scriptMessage is an empty line, and a script that warm.bash reads until the
// pipe's end.
func scriptMessage(old, env []string, is hookState) ([]byte, error) {
	msg := []byte{'\n'}
	if is.moved { // and no trace of it: a fresh shell has been nowhere else
		msg = append(msg, "cd "+wire.Home+"\nunset -v OLDPWD\nexport OLDPWD\n"...)
	}
	if is.stdin {
		msg = append(msg, "exec <"+stdinFile+"\n"...)
	}
	if len(is.args) > 0 {
		msg = append(msg, "set --"...)
		for _, arg := range is.args {
			msg = append(append(append(msg, " '"...), strings.ReplaceAll(arg, "'", `'\''`)...), '\'')
		}
		msg = append(msg, '\n')
	}
	for _, kv := range old {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			msg = append(append(append(msg, "unset -v "...), name...), '\n')
		}
	}
	for _, kv := range env {
		if slices.Contains(old, kv) {
			continue
		}
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !identifier(name) {
			return nil, failure("bash cannot set " + strconv.Quote(name))
		}
		msg = append(append(append(msg, "export "...), name...), "='"...)
		msg = append(append(msg, strings.ReplaceAll(value, "'", `'\''`)...), "'\n"...)
	}
	if is.restored {
		var seed [4]byte
		if _, err := unix.Getrandom(seed[:], 0); err != nil {
			return nil, step("getrandom", err)
		}
		msg = append(msg, "RANDOM="...)
		msg = append(strconv.AppendUint(msg, uint64(binary.LittleEndian.Uint32(seed[:])>>1), 10), '\n')
	}
	return append(msg, '\n'), nil // never but the first line
}

func identifier(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
