package wire

// Where the guest daemon of a sandbox finds its host: a socket in a folder that
// only uid 0 of the sandbox may pass. The path keeps its old name: checkpoints of
// earlier versions name it as a mount.
const (
	DaemonMount = "/.attend"
	HostSocket  = "host"
)

// StartDaemonMessage asks for a guest daemon, which it starts if there is none, and has
// it come to the host.
type StartDaemonMessage struct {
	Limits Limits // of what the guest daemon starts
}

func (m *StartDaemonMessage) Append(b []byte) []byte {
	return putUint(putUint(b, m.Limits.Processes), m.Limits.OpenFiles)
}

// Decode reports whether p was a whole message.
func (m *StartDaemonMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Limits.Processes = r.uint()
	m.Limits.OpenFiles = r.uint()
	return r.done()
}
