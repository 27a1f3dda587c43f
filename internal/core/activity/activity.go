// Package activity shows who ran what. It lists one entry per audit row and one per running
// execution, with the cost. If the tenant keeps texts, entries include the start of the code or
// command.
package activity

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Entry is a call that ran, was rejected, or is still running.
type Entry struct {
	audit.Row
	Running bool // the execution has not ended, so Row has no outcome
	// Text is the redacted start of the code or command; "" if the tenant keeps no texts.
	Text            string
	KeyName         string // name of the key, or of the key that created the token; "" after the key is deleted
	EnvironmentName string // "" after the environment is deleted
}

// Kind returns the kind of the call.
func (e *Entry) Kind() Kind { return KindOf(e.Source) }

// Store reads the activity.
type Store interface {
	// Activity returns entries, newest first. It orders ended calls by their end and running ones
	// by their start.
	Activity(ctx context.Context, f Filter) (page []Entry, next string, err error)
}

// Running is the Filter.Status of executions that have not ended.
const Running = "running"

// Filter selects a tenant's entries. Tenant is required; any other zero field matches every entry.
type Filter struct {
	Tenant                       tenant.ID
	Key                          string // id; also selects the calls of the key's tokens
	Agent, Session, Turn         string
	Sandbox, Thread, Environment string // ids
	Kind                         Kind
	Source                       string
	Status                       string // an audit.ExitStatus, or Running
	CodeSHA256                   []byte
	Since, Before                time.Time
	Cursor                       string
	Limit                        int // 1 to MaxPage
}

// MaxPage limits the entries of a page.
const MaxPage = 1000

// MaxText limits the bytes of a text.
const MaxText = 4 << 10

// Shorten cuts a text to MaxText bytes without splitting a character. It removes NUL, which
// databases reject.
func Shorten(text string) string {
	if len(text) > MaxText {
		n := MaxText - len(more)
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + more
	}
	return text
}

const more = "…"
