package wire

// Limits are the resource limits of a program; zero leaves one as it is.
type Limits struct {
	Processes uint64 // tasks of the unprivileged user
	OpenFiles uint64 // descriptors of one process
}

// Command is how a process is started.
type Command struct {
	Language string   // a language.Name, or "" for any other program
	Path     string   // of the program to execute
	Argv     []string // with argv[0]
	Env      []string // complete, "NAME=value"
	Dir      string
	Limits   Limits
}

func (c *Command) put(b []byte) []byte {
	b = putString(b, c.Language)
	b = putString(b, c.Path)
	b = putList(b, c.Argv)
	b = putList(b, c.Env)
	b = putString(b, c.Dir)
	b = putUint(b, c.Limits.Processes)
	return putUint(b, c.Limits.OpenFiles)
}

func (c *Command) take(r *reader) {
	c.Language = r.string()
	c.Path = r.string()
	c.Argv = r.list()
	c.Env = r.list()
	c.Dir = r.string()
	c.Limits.Processes = r.uint()
	c.Limits.OpenFiles = r.uint()
}

// HelloMessage opens a conversation.
type HelloMessage struct {
	Min, Max uint64 // versions the host speaks
}

func (m *HelloMessage) Append(b []byte) []byte { return putUint(putUint(b, m.Min), m.Max) }

// Decode reports whether p was a whole message.
func (m *HelloMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Min, m.Max = r.uint(), r.uint()
	return r.done()
}

// WelcomeMessage answers Hello; the frame's Seq is the number of the last frame
// that was acknowledged, so the next frame to come is one above.
type WelcomeMessage struct {
	Protocol uint64 // 0 when host and guest share no version
	Version  string // of the guest binary
	Warm     string // language of the interpreter that waits, or ""
	Runs     []uint64
}

func (m *WelcomeMessage) Append(b []byte) []byte {
	b = putUint(b, m.Protocol)
	b = putString(b, m.Version)
	b = putString(b, m.Warm)
	b = putUint(b, uint64(len(m.Runs)))
	for _, id := range m.Runs {
		b = putUint(b, id)
	}
	return b
}

// Decode reports whether p was a whole message.
func (m *WelcomeMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Protocol = r.uint()
	m.Version = r.string()
	m.Warm = r.string()
	n := r.count()
	if n > MaxRuns {
		return false
	}
	m.Runs = make([]uint64, 0, n)
	for range n {
		m.Runs = append(m.Runs, r.uint())
	}
	return r.done()
}

// WarmMessage asks for an interpreter that waits for its program.
type WarmMessage struct {
	Command
	Site    string   // Python: folder in which .pth files are read
	Preload []string // Python: modules to import ahead
}

func (m *WarmMessage) Append(b []byte) []byte {
	b = m.Command.put(b)
	b = putString(b, m.Site)
	return putList(b, m.Preload)
}

// Decode reports whether p was a whole message.
func (m *WarmMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.take(&r)
	return r.done()
}

func (m *WarmMessage) take(r *reader) {
	m.Command.take(r)
	m.Site = r.string()
	m.Preload = r.list()
}

// RenewMessage ends all that is left of a program, and asks for an interpreter that waits
// for the next one in namespaces of its own.
type RenewMessage struct {
	WarmMessage
	Root, Tmp, Shm uint64 // bytes that may be written to /, /tmp and /dev/shm
	Inodes         uint64 // files that may be made in each of them
}

func (m *RenewMessage) Append(b []byte) []byte {
	b = m.WarmMessage.Append(b)
	return putUint(putUint(putUint(putUint(b, m.Root), m.Tmp), m.Shm), m.Inodes)
}

// Decode reports whether p was a whole message.
func (m *RenewMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.WarmMessage.take(&r)
	m.Root, m.Tmp, m.Shm, m.Inodes = r.uint(), r.uint(), r.uint(), r.uint()
	return r.done()
}

// File is written before a program starts. A path that ends with a slash is a
// folder, which is made if it is not there.
type File struct {
	Path string
	Mode uint64
	Data []byte
}

// RunMessage asks for a program.
type RunMessage struct {
	Command
	Warm    bool   // the waiting interpreter may be used
	Timeout uint64 // nanoseconds; 0 for none
	Output  uint64 // bytes per stream that are passed on; the rest is counted
	Files   []File
	Stdin   []byte // what the program reads; empty for /dev/null
	Port    uint64 // of the loopback address at which it may ask the host by HTTP; 0 for none
}

func (m *RunMessage) Append(b []byte) []byte {
	b = m.Command.put(b)
	b = putBool(b, m.Warm)
	b = putUint(b, m.Timeout)
	b = putUint(b, m.Output)
	b = putUint(b, uint64(len(m.Files)))
	for _, f := range m.Files {
		b = putString(b, f.Path)
		b = putUint(b, f.Mode)
		b = putString(b, f.Data)
	}
	if len(m.Stdin) > 0 || m.Port > 0 { // older guests do not know them
		b = putString(b, m.Stdin)
	}
	if m.Port > 0 {
		b = putUint(b, m.Port)
	}
	return b
}

// Decode reports whether p was a whole message. The data of files and stdin stays in p.
func (m *RunMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Command.take(&r)
	m.Warm = r.bool()
	m.Timeout = r.uint()
	m.Output = r.uint()
	for n := r.count(); n > 0 && !r.bad; n-- {
		m.Files = append(m.Files, File{Path: r.string(), Mode: r.uint(), Data: r.bytes()})
	}
	if len(r.b) > 0 {
		if stdin := r.bytes(); len(stdin) > 0 {
			m.Stdin = stdin
		}
		if len(r.b) > 0 {
			if m.Port = r.uint(); m.Port == 0 || m.Port > 65535 {
				return false
			}
		} else if m.Stdin == nil {
			return false
		}
	}
	return r.done()
}

// KillMessage sends a signal to a run.
type KillMessage struct {
	Run    uint64
	Signal uint64
}

func (m *KillMessage) Append(b []byte) []byte { return putUint(putUint(b, m.Run), m.Signal) }

// Decode reports whether p was a whole message.
func (m *KillMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Run, m.Signal = r.uint(), r.uint()
	return r.done()
}

// ReseedMessage tells a restored guest that others have the same checkpoint.
type ReseedMessage struct {
	Hostname string // "" leaves it
	// MachineID, unless it is "", becomes the machine's, and a new number is written
	// to GenerationFile, for programs that want to know.
	MachineID string
}

// GenerationFile holds a number that is another one after each restore.
const GenerationFile = "/run/atoll/generation"

func (m *ReseedMessage) Append(b []byte) []byte {
	return putString(putString(b, m.Hostname), m.MachineID)
}

// Decode reports whether p was a whole message.
func (m *ReseedMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Hostname, m.MachineID = r.string(), r.string()
	return r.done()
}

// EnterMessage puts the folder HomeName of Shared in the place of Home.
type EnterMessage struct {
	Fill bool // with what Home holds now, if the folder is empty
}

func (m *EnterMessage) Append(b []byte) []byte { return putBool(b, m.Fill) }

// Decode reports whether p was a whole message.
func (m *EnterMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Fill = r.bool()
	return r.done()
}

// ProtectMessage makes folders read-only that the host has mounted since the start.
type ProtectMessage struct{ Folders []string }

func (m *ProtectMessage) Append(b []byte) []byte { return putList(b, m.Folders) }

// Decode reports whether p was a whole message.
func (m *ProtectMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Folders = r.list()
	return r.done()
}

// ReplyMessage answers a request; an empty Error is success.
type ReplyMessage struct{ Error string }

func (m *ReplyMessage) Append(b []byte) []byte { return putString(b, m.Error) }

// Decode reports whether p was a whole message.
func (m *ReplyMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Error = r.string()
	return r.done()
}

// ExitMessage is the end of a run.
type ExitMessage struct {
	Code      uint64 // exit status, 128+n when signal n ended it
	Signal    uint64
	TimedOut  bool
	Warm      bool
	DiskFull  bool   // the program failed and left a file system without room
	TasksFull bool   // it failed and left the limit on processes reached
	Stdout    uint64 // bytes the program wrote, those not passed on included
	Stderr    uint64
	PeakRSS   uint64 // bytes, of the main process
	CPU       uint64 // nanoseconds, of the main process and what it waited for
	Blocked   string // the rule that ended it; "" for none
}

func (m *ExitMessage) Append(b []byte) []byte {
	b = putUint(b, m.Code)
	b = putUint(b, m.Signal)
	b = putBool(b, m.TimedOut)
	b = putBool(b, m.Warm)
	b = putBool(b, m.DiskFull)
	b = putBool(b, m.TasksFull)
	b = putUint(b, m.Stdout)
	b = putUint(b, m.Stderr)
	b = putUint(b, m.PeakRSS)
	b = putUint(b, m.CPU)
	if m.Blocked != "" { // of which older hosts know nothing
		b = putString(b, m.Blocked)
	}
	return b
}

// Decode reports whether p was a whole message.
func (m *ExitMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Code = r.uint()
	m.Signal = r.uint()
	m.TimedOut = r.bool()
	m.Warm = r.bool()
	m.DiskFull = r.bool()
	m.TasksFull = r.bool()
	m.Stdout = r.uint()
	m.Stderr = r.uint()
	m.PeakRSS = r.uint()
	m.CPU = r.uint()
	if len(r.b) > 0 {
		if m.Blocked = r.string(); m.Blocked == "" {
			return false
		}
	}
	return r.done()
}
