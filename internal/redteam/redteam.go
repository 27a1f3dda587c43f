// Package redteam attacks a running server through its HTTP interface, and reports
// which attacks held.
//
// It is a client: it imports nothing of the server, so that what it sees is what a
// caller sees. A run needs a key that administers, makes two tenants with bounded
// plans (an attacker and a victim), does to them what a hostile client or program
// would, and removes what it made. Cases keep to the limits of their own tenants, so
// that a run is safe on an installation that serves others.
package redteam

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Severity is how bad it is when a case fails.
type Severity string

// The severities. Critical is a way out of the sandbox or into another tenant.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
)

// Verdict is the outcome of a case.
type Verdict string

// The verdicts. A case that could not be tried has failed: only a feature that the
// server's configuration switches off is skipped.
const (
	Pass Verdict = "PASS"
	Fail Verdict = "FAIL"
	Skip Verdict = "SKIP"
)

// Case is one attack.
type Case struct {
	ID       string   // group, slash, name
	Severity Severity // when it fails
	Tries    string   // what it does, in one sentence
	Holds    string   // what a PASS means

	// run returns nil when the server held, a *finding when it did not, a *skipped
	// when the feature is off, and any other error when it could not be tried.
	run func(ctx context.Context, a *arena) error
}

// Group is the part of the ID before the slash.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// finding is what a case saw that it should not have seen.
type finding struct{ evidence string }

func (f *finding) Error() string { return f.evidence }

// found returns a finding.
func found(format string, args ...any) error {
	return &finding{evidence: clip(fmt.Sprintf(format, args...))}
}

// skipped says why a case does not apply to this server.
type skipped struct{ reason string }

func (s *skipped) Error() string { return s.reason }

func skip(format string, args ...any) error { return &skipped{reason: fmt.Sprintf(format, args...)} }

// maxEvidence bounds the evidence of one case, in bytes.
const maxEvidence = 2000

// clip makes text fit for a report: bounded, and without control characters, which a
// terminal would obey.
func clip(text string) string {
	if len(text) > maxEvidence {
		text = text[:maxEvidence] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, text)
}

// Cases returns all cases, group by group, in the order in which Run starts them.
func Cases() []Case {
	return slices.Concat(
		packageCases(), // first, because they take longest
		escapeCases(), persistenceCases(), egressCases(), tenancyCases(), scopeCases(), redactionCases(), fileCases(), archiveCases(),
		webhookCases(), inputCases(), mcpCases(), terminalCases(), previewCases(), exhaustionCases(), auditCases(),
		policyCases(), confirmCases(), handoffCases(), budgetCases(), costCases(), fetchCases(), mcpClientCases(), vaultCases(),
		webChannelCases(), skillCases(), isolationCases(), rootCases(), idempotencyCases(), jsonCases(), cliCases(), streamCases(), canaryCases(),
	)
}

// Match returns the cases that a pattern selects: a whole ID, a group, or a glob as
// path.Match has it. Several patterns are separated by commas; "" selects all.
func Match(all []Case, patterns string) ([]Case, error) {
	if patterns == "" {
		return all, nil
	}
	var out []Case
	for pattern := range strings.SplitSeq(patterns, ",") {
		var hits int
		for _, c := range all {
			ok, err := path.Match(pattern, c.ID)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
			if !ok && pattern != c.Group() {
				continue
			}
			hits++
			if !slices.ContainsFunc(out, func(o Case) bool { return o.ID == c.ID }) {
				out = append(out, c)
			}
		}
		if hits == 0 {
			return nil, fmt.Errorf("no case matches %q; --list has them all", pattern)
		}
	}
	return out, nil
}

// Options of a run.
type Options struct {
	URL   string // of the server
	Key   string // one that administers
	Cases []Case
	// Parallel is how many cases run at a time, 1 to 4.
	Parallel int
	// Force goes on where an earlier run seems to be under way.
	Force bool
	// Listen is the host and port at which the server reaches the attacker's server. If it is
	// empty, the attacker listens on loopback for a server on loopback, and not at all otherwise.
	Listen string
	// Data is the server's data directory, which cases search for leaks. It is empty if the server
	// runs on another machine.
	Data string
	// Program is the path of the atoll command, which cases run against hostile servers.
	Program string
	// Each is called with each result, one at a time.
	Each func(Result)
}

// Run attacks a server. The report has the cases that ran; an error says that the run
// could not be made or was cut short, or that something of it is left.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	a, err := newArena(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close(ctx)) }()
	if err := a.setUp(ctx); err != nil {
		return nil, fmt.Errorf("prepare the tenants: %w", err)
	}
	report := &Report{Server: a.base.Redacted(), Started: time.Now().UTC()}
	results := make([]*Result, len(o.Cases))
	var mu sync.Mutex // of o.Each
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(1, min(o.Parallel, maxParallel)))
	for i, c := range o.Cases {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			r := try(ctx, a, c)
			if ctx.Err() != nil {
				return // its verdict would be about the end of the run
			}
			results[i] = &r
			if o.Each != nil {
				mu.Lock()
				defer mu.Unlock()
				o.Each(r)
			}
		})
	}
	wg.Wait()
	for _, r := range results {
		if r != nil {
			report.Results = append(report.Results, *r)
		}
	}
	report.Took = time.Since(report.Started)
	if ctx.Err() != nil {
		return report, fmt.Errorf("the run ended after %d of %d cases: %w", len(report.Results), len(o.Cases), context.Cause(ctx))
	}
	return report, nil
}

// maxParallel bounds how many cases run at a time: the plan of the attacker has room
// for no more.
const maxParallel = 4

// caseTime bounds a case; one that takes longer has failed.
const caseTime = 90 * time.Second

// try runs one case.
func try(ctx context.Context, a *arena, c Case) (r Result) {
	began := time.Now()
	r = Result{Case: c, Verdict: Pass}
	ctx, cancel := context.WithTimeoutCause(ctx, caseTime, fmt.Errorf("the case did not end within %v", caseTime))
	defer cancel()
	err := c.run(ctx, a)
	r.Took = time.Since(began)
	if err == nil {
		return r
	}
	var f *finding
	var s *skipped
	switch {
	case errors.As(err, &f):
		r.Verdict, r.Evidence = Fail, f.evidence
	case errors.As(err, &s):
		r.Verdict, r.Evidence = Skip, s.reason
	case ctx.Err() != nil:
		r.Verdict, r.Evidence = Fail, clip(fmt.Sprintf("%v (%v)", context.Cause(ctx), err))
	default:
		r.Verdict, r.Evidence = Fail, clip("could not be tried: "+err.Error())
	}
	return r
}
