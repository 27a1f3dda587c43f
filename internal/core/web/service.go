package web

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// MaxCalls limits a tenant's concurrent calls per server.
const MaxCalls = 16

// callTime limits a call, whatever its provider does.
const callTime = 60 * time.Second

// Config configures a Service.
type Config struct {
	// Web and People search, Pages fetches; nil turns a service off.
	Web, People Engine
	Pages       Fetcher
	// Record writes the audit row of a call and charges for it.
	Record func(context.Context, *tenant.Principal, sandbox.Call) error
	// Cover redacts a caller's secrets in web content; nil for no redaction.
	Cover func(p *tenant.Principal, text string) (string, error)
	// Used returns the credits that a tenant has used this month.
	Used func(ctx context.Context, tenant tenant.ID) (float64, error)
}

// Service is the single entry point for web calls. It validates, limits, counts and records them.
type Service struct {
	cfg Config

	mu   sync.Mutex
	busy map[tenant.ID]int // guarded by mu: calls under way
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg, busy: map[tenant.ID]int{}} }

// Services lists the enabled services by their ledger names.
func (s *Service) Services() (names []string) {
	for _, service := range []struct {
		name string
		on   bool
	}{{SearchName, s.cfg.Web != nil}, {PeopleName, s.cfg.People != nil}, {FetchName, s.cfg.Pages != nil}} {
		if service.on {
			names = append(names, service.name)
		}
	}
	return names
}

// Caller identifies the caller. Session and Agent may be empty.
type Caller struct {
	Principal               *tenant.Principal
	TraceID, Session, Agent string
	By                      execution.Origin // for a model's call
	// Reserve reserves the cost of a call until release is called, or rejects the call; nil for
	// calls that are paid for otherwise.
	Reserve func(ctx context.Context, service string) (release func(), err error)
	// Held applies the network policy of the caller's environment to the call.
	Held bool
}

// fetches returns the check for pages that the caller may not fetch; nil for no restriction.
func (by *Caller) fetches() func(*url.URL) error {
	if !by.Held {
		return nil
	}
	return by.Principal.Fetches
}

// Search answers a query, best results first. Failed calls are free.
func (s *Service) Search(ctx context.Context, by Caller, q Query) (found []Result, err error) {
	name, engine, err := s.engine(q.Kind)
	if err != nil {
		return nil, err
	}
	if err := q.complete(engine); err != nil {
		return nil, err
	}
	if by.Held {
		if err := by.Principal.Searches(); err != nil {
			return nil, err
		}
	}
	err = s.call(ctx, by, sandbox.Call{Source: name, Command: []byte(strings.Join(q.Texts, "\n"))}, func(ctx context.Context, row *sandbox.Call) error {
		found, err = ask(ctx, covered{engine, s.cover(by.Principal)}, &q)
		row.Annotate("provider", engine.Name())
		row.Annotate("results", strconv.Itoa(len(found)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Fetched is the result of one fetch: a page or an error.
type Fetched struct {
	Page
	Asked string // the requested URL
	Err   error
}

// Fetch fetches pages and truncates the text of each to a number of tokens. Each page counts as one
// call, even if it cannot be read.
func (s *Service) Fetch(ctx context.Context, by Caller, urls []string, tokens int) ([]Fetched, error) {
	if err := s.CheckFetch(); err != nil {
		return nil, err
	}
	if len(urls) == 0 || len(urls) > MaxURLs {
		return nil, invalid("url must be a URL, or a list of 1 to %d", MaxURLs)
	}
	for _, u := range urls {
		if u == "" || len(u) > maxURL {
			return nil, invalid("url must have 1 to %d bytes", maxURL)
		}
	}
	if tokens == 0 {
		tokens = DefaultTokens
	}
	if tokens < 1 || tokens > MaxTokens {
		return nil, invalid("max_tokens_per_page must be between 1 and %d", MaxTokens)
	}
	out := make([]Fetched, len(urls))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxFetches)
	for i, where := range urls {
		g.Go(func() error {
			f := Fetched{Asked: where}
			err := s.call(ctx, by, sandbox.Call{Source: FetchName, Command: []byte(where)}, func(ctx context.Context, row *sandbox.Call) error {
				f.Page, f.Err = s.cfg.Pages.Fetch(ctx, where, by.fetches())
				if f.Err == nil {
					if err := s.coverAll(by.Principal, &f.Title, &f.Text); err != nil {
						return err
					}
				}
				if u, err := url.Parse(f.URL); err == nil && u.Hostname() != "" {
					row.Hosts = []string{u.Hostname()}
				}
				if f.Err != nil && fault.KindOf(f.Err) == fault.Invalid { // of this page alone
					row.Status, row.Reason = audit.Error, f.Err.Error()
					return nil
				}
				return f.Err
			})
			text := Cut(f.Text, tokens*charsPerToken)
			f.Cut, f.Text = f.Cut || len(text) < len(f.Text), text
			out[i] = f
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// maxFetches limits the concurrent fetches of one call.
const maxFetches = 4

// off rejects a service that the operator has not enabled.
func off(name, setting string) error {
	return fault.New(fault.NotFound, "%s is off on this server: the operator can turn it on with the setting %s", name, setting)
}

// call runs do for a caller within its limits, and records the call.
func (s *Service) call(ctx context.Context, by Caller, row sandbox.Call, do func(context.Context, *sandbox.Call) error) error {
	row.TraceID, row.Session, row.Agent, row.Began = by.TraceID, by.Session, by.Agent, time.Now()
	row.SetOrigin(by.By)
	if by.Reserve != nil {
		release, err := by.Reserve(ctx, row.Source)
		if err != nil {
			return err
		}
		defer release() // the record has it
	}
	err := s.admit(ctx, by.Principal)
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, callTime, fault.New(fault.Unavailable, "it took longer than %s", callTime))
		err = do(limited, &row)
		if cause, ok := errors.AsType[*fault.Error](context.Cause(limited)); ok && err != nil && ctx.Err() == nil {
			err = cause
		}
		cancel()
		s.done(by.Principal.Tenant.ID)
	}
	if row.Ended(ctx, err, err == nil) {
		if failed := s.cfg.Record(ctx, by.Principal, row); failed != nil {
			return failed
		}
	}
	return err
}

// admit enforces the tenant's budget and MaxCalls. If it succeeds, the caller must call done.
func (s *Service) admit(ctx context.Context, p *tenant.Principal) error {
	if budget := p.Tenant.MonthlyCredits; budget > 0 {
		used, err := s.cfg.Used(ctx, p.Tenant.ID)
		if err != nil {
			return err
		}
		if used >= budget {
			now := time.Now().UTC()
			return fault.Limit("monthly_credits", time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC),
				"monthly budget used up (%.4f of %s credits). Ask the operator to raise it, or wait for the next month.", used, strconv.FormatFloat(budget, 'f', -1, 64))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[p.Tenant.ID] >= MaxCalls {
		return fault.Limit("web_calls", time.Time{}, "the tenant has reached its limit of %d searches and pages in progress; retry when one ends", MaxCalls)
	}
	s.busy[p.Tenant.ID]++
	return nil
}

func (s *Service) done(id tenant.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id]--; s.busy[id] == 0 {
		delete(s.busy, id)
	}
}

// ask searches for each text of a query and interleaves the results by rank, without duplicates.
func ask(ctx context.Context, e Engine, q *Query) ([]Result, error) {
	lists := make([][]Result, len(q.Texts))
	g, ctx := errgroup.WithContext(ctx)
	for i, text := range q.Texts {
		g.Go(func() (err error) {
			lists[i], err = e.Search(ctx, Request{q.Kind, text, q.Max, q.Filter})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	found, seen, room := []Result{}, map[string]bool{}, q.MaxTokens*charsPerToken
	for rank := 0; ; rank++ {
		more := false
		for _, list := range lists {
			if rank >= len(list) {
				continue
			}
			more = true
			r, ok := tidy(list[rank], min(room, q.MaxPerResult*charsPerToken), &q.Filter)
			if !ok || seen[r.URL] {
				continue
			}
			if len(found) == q.Max {
				return found, nil
			}
			seen[r.URL], found = true, append(found, r)
			room -= len([]rune(r.Snippet))
		}
		if !more {
			return found, nil
		}
	}
}

// Bounds of what an Engine says of a page.
const (
	maxTitle = 500 // characters
	maxURL   = 4096
)

// tidy returns a cleaned result with at most room characters of snippet; ok is false for an
// unusable result.
func tidy(r Result, room int, f *Filter) (_ Result, ok bool) {
	u, err := url.Parse(r.URL)
	if err != nil || len(r.URL) > maxURL || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || !f.holds(strings.ToLower(u.Hostname())) {
		return r, false
	}
	r.URL = u.String()
	r.Title, r.Snippet = Line(r.Title, maxTitle), Line(r.Snippet, room)
	if r.Title == "" {
		r.Title = u.Hostname()
	}
	return r, true
}

// Line puts a text on one line of at most limit characters. It replaces invalid UTF-8 with U+FFFD,
// and runs of spaces and control characters with one space.
func Line(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	return Cut(text, limit)
}

// Lines cleans a text: it trims trailing spaces, merges consecutive empty lines into one, and
// removes control characters other than tabs and newlines.
func Lines(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	var out strings.Builder
	empty := 0
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line == "" {
			empty++
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\n\n"[:1+min(empty, 1)])
		}
		out.WriteString(line)
		empty = 0
	}
	return out.String()
}

// Cut returns the first limit characters of a text.
func Cut(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}
