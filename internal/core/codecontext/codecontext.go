// Package codecontext describes code contexts: long-lived interpreters in a named sandbox. Each
// piece of code sees the definitions of earlier ones, and values are displayed as in notebooks.
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

// ID names a context within its sandbox: a language and a suffix. A language alone names the
// implicit context, which Atoll creates on first use.
type ID string

var idPattern = regexp.MustCompile(`^(` + language.Join(language.ContextNames(), "|", "|") + `)(-[0-9a-f]{8})?$`)

// ProcessPrefix starts the ids of processes that are contexts.
const ProcessPrefix = "context-"

func (id ID) Process() process.ID { return ProcessPrefix + process.ID(id) }

// Language returns the language of the context.
func (id ID) Language() execution.Language {
	return execution.Language(idPattern.FindStringSubmatch(string(id))[1])
}

// Implicit reports whether Atoll creates the context on its first run.
func (id ID) Implicit() bool { return string(id) == string(id.Language()) }

// ParseID parses a caller's id. It returns a NotFound fault for a malformed one.
func ParseID(text string) (ID, error) {
	if !idPattern.MatchString(text) {
		return "", Unknown(text)
	}
	return ID(text), nil
}

func Unknown(id string) error {
	return fault.New(fault.NotFound, "context %.60q not found in this sandbox", id)
}

// MaxContexts limits the contexts of a sandbox.
const MaxContexts = 32

// Context is a long-lived interpreter.
type Context struct {
	ID      ID
	Dir     string // working directory at start
	Started time.Time
	Running bool          // a piece of code is running
	Exit    *process.Exit // nil while the interpreter runs
}

// Request asks a context to run code.
type Request struct {
	// Key identifies the run within its context, so that Collect can fetch its outcome later; ""
	// for a run that is never collected. Only Python contexts accept a key.
	Key       string
	Code      string
	Timeout   time.Duration
	MaxOutput int64 // bytes of each stream to forward
}

// ErrDetached, as the cancellation cause of Run or Collect, leaves the code running for a later
// Collect.
var ErrDetached = errors.New("the code continues, and its result is collected later")

// ErrNotBegun says that the context has not started the run and will not start it on its own.
var ErrNotBegun = errors.New("the context has not begun this run")

// ErrNoTrace says that the context cannot tell whether it started the run, or what the outcome was.
var ErrNoTrace = errors.New("the context does not know the outcome of this run")

// MaxCode limits the code of a request, in bytes.
const MaxCode = 4 << 20

// Status says how a run ended.
type Status string

const (
	OK          Status = "ok"
	Failed      Status = "error"       // the code raised an error or exited with a nonzero status
	Interrupted Status = "interrupted" // by Interrupt, or because the caller disconnected
	TimedOut    Status = "timeout"
	Ended       Status = "ended" // the interpreter exited during the run
)

// Result is the outcome of a run, without its output.
type Result struct {
	Status                           Status
	Error                            *Error        // as the interpreter reports it; nil for none
	ExitCode                         *int          // for Bash
	Exit                             *process.Exit // set if the interpreter exited during the run
	StdoutBytes, StderrBytes         int64         // written, before redaction
	StdoutTruncated, StderrTruncated bool
	DisplaysTruncated                bool // some displays were too large and were dropped
	Took                             time.Duration
}

// Error is the error that ended a run.
type Error struct {
	Name, Value string
	Traceback   []string // lines, or groups of lines
}

// Display is a value in every available form, by media type: text, base64 for binary types, and
// JSON values for JSON types.
type Display struct {
	Data     map[string]jsontext.Value
	Metadata jsontext.Value // an object
	Result   bool           // this is the value of the last expression
}

// Event is a piece of a run's output, in order. The first Event is empty and says that the code is
// about to run.
type Event struct {
	Stream  process.Stream // of Text
	Text    []byte         // valid until the sink returns
	Display *Display       // instead of Text
}

// Sink receives the events of a run. If it returns an error, Atoll interrupts the run and does not
// call it again.
type Sink func(Event) error
