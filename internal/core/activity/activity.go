// Package activity answers who ran what: one entry for each row of the audit trail, and one for
// each execution that still runs, with its cost and, where the tenant keeps them, the beginning
// of the code or command.
package activity

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Entry is a call that ran, was refused, or still runs.
type Entry struct {
	audit.Row
	Running bool // an execution that has not ended; Row has no outcome then
	// Text is the beginning of what was run, redacted; "" where the tenant keeps no texts.
	Text            string
	KeyName         string // of the key, or of the one that made the token; "" once it is deleted
	EnvironmentName string // "" once it is deleted
}

// Kind is the kind of an entry's call.
func (e *Entry) Kind() Kind { return KindOf(e.Source) }

// Store reads the activity.
type Store interface {
	// Activity returns entries, newest first. The time of an entry is when it ended, or when it
	// began while it runs.
	Activity(ctx context.Context, f Filter) (page []Entry, next string, err error)
}

// Running is the status of an execution that has not ended.
const Running = "running"

// Filter selects entries of a tenant. Zero fields select everything but Tenant, which is
// required.
type Filter struct {
	Tenant                       tenant.ID
	Key                          string // id; the calls of its tokens are among them
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

// MaxPage is how many entries a page has at most.
const MaxPage = 1000

// MaxText bounds the bytes of a text.
const MaxText = 4 << 10

// Shorten cuts a text at MaxText, at a whole character. It has no NUL, which databases refuse.
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
