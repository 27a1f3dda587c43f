package wire

// ConfineMessage says what programs of the sandbox may do. It comes once, before
// the first of them is started.
type ConfineMessage struct {
	Listed   bool     // Writable is all that may be written; otherwise it is empty
	Writable []string // absolute, clean paths
	ReadOnly []string
	Blocked  []string

	Root         bool     // programs run as uid 0
	NoExec       bool     // no fork, no exec
	Commands     []string // that must not be executed
	MaxProcesses uint64   // at the same time, of one program and what it starts; 0 for no bound
}

func (m *ConfineMessage) Append(b []byte) []byte {
	b = putBool(b, m.Listed)
	b = putList(b, m.Writable)
	b = putList(b, m.ReadOnly)
	b = putList(b, m.Blocked)
	b = putBool(b, m.Root)
	b = putBool(b, m.NoExec)
	b = putList(b, m.Commands)
	return putUint(b, m.MaxProcesses)
}

// Decode reports whether p was a whole message.
func (m *ConfineMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Listed = r.bool()
	m.Writable = r.list()
	m.ReadOnly = r.list()
	m.Blocked = r.list()
	m.Root = r.bool()
	m.NoExec = r.bool()
	m.Commands = r.list()
	m.MaxProcesses = r.uint()
	return r.done()
}

// LaunchMessage is a command as process 1 gives it to the launcher.
type LaunchMessage struct {
	Command
	Root   bool // the program runs as uid 0
	NoExec bool // no fork, no exec
	Count  bool // forks are the tracer's to allow
}

func (m *LaunchMessage) Append(b []byte) []byte {
	return putBool(putBool(putBool(m.Command.put(b), m.Root), m.NoExec), m.Count)
}

// Decode reports whether p was a whole message.
func (m *LaunchMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Command.take(&r)
	m.Root = r.bool()
	m.NoExec = r.bool()
	m.Count = r.bool()
	return r.done()
}
