// Package codecontext describes code contexts: interpreters of a named sandbox that stay,
// in which what one piece of code defined is there for the next, and which show values as
// notebooks do.
package codecontext

import (
	"errors"
	"regexp"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/process"
)

// ID names a context within its sandbox: its language, and what tells it from
// others of that. A language alone names the context that is made when it is first
// used.
type ID string

var idPattern = regexp.MustCompile(`^(` + language.Join(language.ContextNames(), "|", "|") + `)(-[0-9a-f]{8})?$`)

// prefix begins the ids of the processes that are contexts.
const ProcessPrefix = "context-"

func (id ID) Process() process.ID { return ProcessPrefix + process.ID(id) }

// Language is what a context runs.
func (id ID) Language() execution.Language {
	return execution.Language(idPattern.FindStringSubmatch(string(id))[1])
}

// lazy reports whether a context comes into being with its first run.
func (id ID) Implicit() bool { return string(id) == string(id.Language()) }

// ParseID reads an id from a caller.
func ParseID(text string) (ID, error) {
	if !idPattern.MatchString(text) {
		return "", Unknown(text)
	}
	return ID(text), nil
}

func Unknown(id string) error {
	return fault.New(fault.NotFound, "context %.60q not found in this sandbox", id)
}

// MaxContexts is how many contexts a sandbox can have.
const MaxContexts = 32

// Context is an interpreter that stays.
type Context struct {
	ID      ID
	Dir     string // where it was started
	Started time.Time
	Running bool          // a piece of code is running
	Exit    *process.Exit // nil while it lives
}

// Request is a piece of code that is to be run.
type Request struct {
	// Key names the run for good among those of its context, so that its outcome can be
	// collected by Collect; "" for a run that nothing asks for again. Only contexts of
	// Python take one.
	Key       string
	Code      string
	Timeout   time.Duration
	MaxOutput int64 // bytes of each stream that are passed on
}

// ErrDetached is the cause of the end of a context of Run or Collect that leaves the code
// running: its outcome is collected later.
var ErrDetached = errors.New("the code continues, and its result is collected later")

// ErrNotBegun says that the context has not begun the run, and will not by itself.
var ErrNotBegun = errors.New("the context has not begun this run")

// ErrNoTrace says that it cannot be told whether a run was begun, or what came of it.
var ErrNoTrace = errors.New("the context does not know the outcome of this run")

// MaxCode is the most bytes of a piece of code.
const MaxCode = 4 << 20

// Status is how a piece of code ended.
type Status string

const (
	OK          Status = "ok"
	Failed      Status = "error"       // by an error, or with a status other than 0
	Interrupted Status = "interrupted" // by Interrupt, or because its caller went away
	TimedOut    Status = "timeout"
	Ended       Status = "ended" // the interpreter did, during the run
)

// Result is what came of a piece of code, without its output.
type Result struct {
	Status                           Status
	Error                            *Error        // as the interpreter tells it; nil for none
	ExitCode                         *int          // of Bash
	Exit                             *process.Exit // of the interpreter, if it ended during the run
	StdoutBytes, StderrBytes         int64         // written, before redaction
	StdoutTruncated, StderrTruncated bool
	DisplaysTruncated                bool // some were left away, as too much
	Took                             time.Duration
}

// Error is an error that a piece of code ended with.
type Error struct {
	Name, Value string
	Traceback   []string // lines, or groups of lines
}

// Display is a value in the forms there are of it, by their media types: text,
// base64 of binary ones, any JSON of those in JSON.
type Display struct {
	Data     map[string]jsontext.Value
	Metadata jsontext.Value // an object
	Result   bool           // it is the value of the last expression
}

// Event is something that a piece of code brought forth, in order. The first one,
// which is empty, says that it is about to run.
type Event struct {
	Stream  process.Stream // of Text
	Text    []byte         // valid until the sink returns
	Display *Display       // instead of Text
}

// Sink takes the events of a run. After an error it is not called again, and the
// run is interrupted.
type Sink func(Event) error
