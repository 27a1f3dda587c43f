package proto

import "encoding/binary"

// Greeting is what the guest daemon says first on each connection.
type Greeting struct {
	Version  int    `json:"version"`
	Instance string `json:"instance"` // of the guest daemon, another one when it had to be started anew
	First    bool   `json:"first"`    // of its connections, on which no request is made
}

// Wanted says how many connections the guest daemon is to make.
type Wanted struct {
	Connections int `json:"connections"`
}

// Request is what the host asks for; one of its fields is set. Paths, arguments
// and variables are bytes.
type Request struct {
	Start     *Start    `json:"start,omitempty"`
	Follow    *Follow   `json:"follow,omitempty"`
	Processes *Empty    `json:"processes,omitempty"`
	Process   *Name     `json:"process,omitempty"`
	Converse  *Converse `json:"converse,omitempty"` // until Enough
	Wait      *Name     `json:"wait,omitempty"`
	Write     *Write    `json:"write,omitempty"` // then Data and End
	Close     *Name     `json:"close,omitempty"`
	Resize    *Resize   `json:"resize,omitempty"`
	Signal    *Signal   `json:"signal,omitempty"`
	Kill      *Name     `json:"kill,omitempty"`
	Forget    *Name     `json:"forget,omitempty"`
	KillAll   *Empty    `json:"kill_all,omitempty"`
	// EndLargest ends the process with the most memory; the Reply's Size is its memory in bytes.
	EndLargest *Empty `json:"end_largest,omitempty"`

	Stat    *Path    `json:"stat,omitempty"`
	List    *List    `json:"list,omitempty"`
	Glob    *Glob    `json:"glob,omitempty"`
	Mkdir   *Path    `json:"mkdir,omitempty"`
	Remove  *Remove  `json:"remove,omitempty"`
	Move    *Move    `json:"move,omitempty"`
	Watch   *Watch   `json:"watch,omitempty"`
	Read    *Read    `json:"read,omitempty"`
	Create  *Create  `json:"create,omitempty"` // then Data and End
	Pack    *Path    `json:"pack,omitempty"`
	Unpack  *Path    `json:"unpack,omitempty"` // then Data and End
	Skills  *Empty   `json:"skills,omitempty"` // likewise, of files below the folder of skills, which programs only read
	Survey  *Path    `json:"survey,omitempty"`
	Adopt   *Path    `json:"adopt,omitempty"`   // then End when the folder is made, with an Error if it is not
	Connect *Connect `json:"connect,omitempty"` // then bytes without frames, both ways
	Accept  *Accept  `json:"accept,omitempty"`  // likewise
}

// Adopted is the name of a folder that is to be adopted, where the answer says.
const Adopted = "adopted"

// Empty is a request without more to say.
type Empty struct{}

// Name names a process.
type Name struct {
	ID string `json:"id"`
}

// Start is a request for a process.
type Start struct {
	ID        string   `json:"id"`
	Argv      [][]byte `json:"argv,omitempty"`
	Shell     *[]byte  `json:"shell,omitempty"` // instead of Argv
	Env       [][]byte `json:"env,omitempty"`
	Dir       []byte   `json:"dir,omitempty"`
	Input     bool     `json:"input,omitempty"`
	Terminal  *Size    `json:"terminal,omitempty"`
	Control   bool     `json:"control,omitempty"`
	Timeout   int64    `json:"timeout,omitempty"` // ns
	Lossless  bool     `json:"lossless,omitempty"`
	Patient   bool     `json:"patient,omitempty"` // Lossless even without a follower
	OpenFiles int      `json:"open_files,omitempty"`
	Follow    bool     `json:"follow,omitempty"` // output and End come on this connection, and Taken is waited for
}

// Size is that of a terminal.
type Size struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Follow is a request for output.
type Follow struct {
	ID    string `json:"id"`
	After int64  `json:"after"`
}

// Converse is a request to write to descriptor 3 and then follow the output, whose
// End comes when the host has had Enough, or the process has ended; with Ends, which
// the reply confirms, also behind a frame of descriptor 4 that ends with Last.
type Converse struct {
	ID    string `json:"id"`
	Data  []byte `json:"data"`
	After int64  `json:"after"`
	Ends  bool   `json:"ends,omitempty"`
}

// Last ends what a process says on descriptor 4 for now.
const Last = " \n"

// Write is a request to write what follows.
type Write struct {
	ID      string `json:"id"`
	Control bool   `json:"control,omitempty"`
}

// Resize is a request to change a terminal.
type Resize struct {
	ID string `json:"id"`
	Size
}

// Signal is a request to signal a process.
type Signal struct {
	ID     string `json:"id"`
	Number int    `json:"number"`
	Group  bool   `json:"group,omitempty"`
}

// Path names a file.
type Path struct {
	Path []byte `json:"path"`
}

// List is a request for a folder's entries.
type List struct {
	Path  []byte `json:"path"`
	Depth int    `json:"depth"`
	Limit int    `json:"limit"`
}

// Glob is a request for what matches a pattern.
type Glob struct {
	Dir     []byte `json:"dir"`
	Pattern []byte `json:"pattern"`
	Limit   int    `json:"limit"`
}

// Remove is a request to remove.
type Remove struct {
	Path      []byte `json:"path"`
	Recursive bool   `json:"recursive,omitempty"`
}

// Move is a request to rename.
type Move struct {
	From    []byte `json:"from"`
	To      []byte `json:"to"`
	Replace bool   `json:"replace,omitempty"`
}

// Watch is a request for changes.
type Watch struct {
	Path      []byte `json:"path"`
	Recursive bool   `json:"recursive,omitempty"`
}

// Read is a request for a file's content.
type Read struct {
	Path   []byte `json:"path"`
	Offset int64  `json:"offset,omitempty"`
	Limit  int64  `json:"limit"` // negative for all
}

// Create is a request to write a file.
type Create struct {
	Path   []byte `json:"path"`
	Append bool   `json:"append,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`
}

// Connect is a request for a connection to a port.
type Connect struct {
	Port uint16 `json:"port"`
	Wait int64  `json:"wait,omitempty"` // ns for something to begin to listen, where something was started lately
}

// Accept is a request for a connection that a program makes to a port of the loopback interface,
// on which the guest daemon listens while such requests come.
type Accept struct {
	Port uint16 `json:"port"`
	Wait int64  `json:"wait"` // ns
}

// Reply answers a request. With an Error nothing else is set, and the exchange is
// over.
type Reply struct {
	Error     *Error    `json:"error,omitempty"`
	Process   *Process  `json:"process,omitempty"`
	Processes []Process `json:"processes,omitempty"`
	File      *File     `json:"file,omitempty"`
	Files     []File    `json:"files,omitempty"`
	Paths     [][]byte  `json:"paths,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Size      int64     `json:"size,omitempty"`
	Count     int64     `json:"count,omitempty"`
	Ends      bool      `json:"ends,omitempty"`
}

// Closing is the last of what is sent.
type Closing struct {
	Error *Error `json:"error,omitempty"`
	Exit  *Exit  `json:"exit,omitempty"`
	Files int64  `json:"files,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

// Reason is a kind of refusal.
type Reason string

// Reasons. One that is not among them is Failed.
const (
	Failed   Reason = "failed"
	Invalid  Reason = "invalid"
	Missing  Reason = "missing"
	Exists   Reason = "exists"
	Denied   Reason = "denied"
	Full     Reason = "full"     // a file system has no room
	Limited  Reason = "limited"  // a bound of this sandbox
	Files    Reason = "files"    // no file descriptor is left
	Mistaken Reason = "mistaken" // it is not of the kind that this can be done with
)

// Error is a refusal.
type Error struct {
	Reason Reason `json:"reason"`
	Text   string `json:"text"`

	// Program is set where it is the program that could not be started: there is none
	// when Reason is Missing, otherwise it cannot be executed.
	Program bool `json:"program,omitempty"`
}

func (e *Error) Error() string { return e.Text }

// Process describes a process. Times are microseconds since 1970.
type Process struct {
	ID       string   `json:"id"`
	PID      int      `json:"pid"`
	Argv     [][]byte `json:"argv"`
	Dir      []byte   `json:"dir"`
	Started  int64    `json:"started"`
	Input    bool     `json:"input,omitempty"`
	Terminal bool     `json:"terminal,omitempty"`
	Exit     *Exit    `json:"exit,omitempty"`
	Written  [4]int64 `json:"written"`
	First    int64    `json:"first"`
	Last     int64    `json:"last"`
}

// Exit is the end of a process.
type Exit struct {
	Code     int    `json:"code"`
	Signal   int    `json:"signal,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Blocked  string `json:"blocked,omitempty"`
	Together bool   `json:"together,omitempty"` // by KillAll
	// OutOfMemory is set when EndLargest ended it, or a process it had started, and its Code is 137.
	OutOfMemory bool  `json:"out_of_memory,omitempty"`
	At          int64 `json:"at"`
	CPU         int64 `json:"cpu"` // ns
	PeakRSS     int64 `json:"peak_rss"`
}

// File describes a file.
type File struct {
	Path     []byte `json:"path"`
	Kind     string `json:"kind"` // file, folder, link or other
	Size     int64  `json:"size"`
	Mode     uint32 `json:"mode"` // as chmod has it
	UID      uint32 `json:"uid"`
	GID      uint32 `json:"gid"`
	Modified int64  `json:"modified"` // µs since 1970
	Target   []byte `json:"target,omitempty"`
}

// Changed is a change of a file.
type Changed struct {
	Change string `json:"change"` // created, modified, removed or lost
	Path   []byte `json:"path"`
	Folder bool   `json:"folder,omitempty"`
}

// OutputSize is the length of what precedes the bytes in an Output frame: the
// stream, the place where they begin, and how many bytes ahead of them are lost.
const OutputSize = 17

// PutOutput writes it.
func PutOutput(b []byte, stream uint8, at, dropped int64) {
	_ = b[OutputSize-1]
	b[0] = stream
	binary.LittleEndian.PutUint64(b[1:], uint64(at))
	binary.LittleEndian.PutUint64(b[9:], uint64(dropped))
}

// TakeOutput reads it, and reports whether it can be.
func TakeOutput(b []byte) (stream uint8, at, dropped int64, ok bool) {
	if len(b) <= OutputSize {
		return 0, 0, 0, false
	}
	stream = b[0]
	at = int64(binary.LittleEndian.Uint64(b[1:]))
	dropped = int64(binary.LittleEndian.Uint64(b[9:]))
	return stream, at, dropped, stream < 4 && at >= 0 && dropped >= 0 && at <= 1<<60 && dropped <= at
}
