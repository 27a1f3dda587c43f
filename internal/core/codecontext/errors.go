package codecontext

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
)

// ErrTooMany rejects a context if the sandbox has MaxContexts.
var ErrTooMany = fault.Limit("contexts", time.Time{}, "a sandbox can have %d code contexts; delete one that you do not need", MaxContexts)

// ErrLanguage rejects a context of a language without contexts.
var ErrLanguage = fault.New(fault.Invalid, "language must be one of %s", language.Join(language.ContextNames(), ", ", ", "))

// ErrTooLong rejects code of more than MaxCode bytes.
var ErrTooLong = fault.New(fault.TooLarge, "code must have at most %d bytes", MaxCode)

// HasNUL rejects code with a NUL byte in a language that cannot run it.
func HasNUL(id ID) error {
	return fault.New(fault.Invalid, "code for %s cannot have a NUL byte", language.Get(id.Language()).Title)
}

// NoKeys rejects a run with a key in a language without keys.
func NoKeys(id ID) error {
	return fault.New(fault.Invalid, "contexts of %s have no runs with keys", language.Get(id.Language()).Title)
}

// Busy rejects code while other code runs.
func Busy(id ID) error {
	return fault.New(fault.Conflict, "the context %s is running code; wait for it, interrupt it, or use another context", id)
}

// NotResponding says that the interpreter ignores the host.
func NotResponding(id ID) error {
	return fault.New(fault.Conflict, "the context %s does not respond, and the effect of its code is unknown: restart the context, or destroy the sandbox", id)
}

// HasEnded says that the interpreter ended with a status.
func HasEnded(id ID, status int) error {
	return fault.New(fault.Conflict, "the interpreter of the context %s has ended with status %d; restart the context", id, status)
}
