package wire

// Where the attendant of a sandbox finds its host: a socket in a folder that
// nobody but uid 0 of the sandbox may pass.
const (
	Meeting       = "/.attend"
	MeetingSocket = "host"
)

// AttendMessage asks for an attendant, which it starts if there is none, and has
// it come to the host.
type AttendMessage struct {
	Limits Limits // of what the attendant starts
}

func (m *AttendMessage) Append(b []byte) []byte {
	return putUint(putUint(b, m.Limits.Processes), m.Limits.OpenFiles)
}

// Decode reports whether p was a whole message.
func (m *AttendMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Limits.Processes = r.uint()
	m.Limits.OpenFiles = r.uint()
	return r.done()
}
