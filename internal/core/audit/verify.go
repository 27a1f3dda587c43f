package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// slack is the tolerated clock difference between the database, servers and the verifier. A row
// deleted up to slack early counts as purged by age, and a row up to slack older than the one
// before it as written at the same time.
const slack = time.Hour

// maxProblems limits a Report. A trail with that many problems is worthless anyway.
const maxProblems = 1000

// ProblemKind classifies a Problem.
type ProblemKind string

const (
	Changed ProblemKind = "changed" // a row differs from its sealed content
	Missing ProblemKind = "missing" // a row was deleted before its retention passed
	Order   ProblemKind = "order"   // a seal is missing or out of order
	Chain   ProblemKind = "chain"   // a seal was changed, or does not continue from the previous one
	Known   ProblemKind = "known"   // the chain does not contain the known seal

	Unsealed    ProblemKind = "unsealed"    // a row was appended while the sealing rule was missing
	Backdated   ProblemKind = "backdated"   // a row's time contradicts its neighbors
	Unprotected ProblemKind = "unprotected" // a database rule that protects the trail is missing or changed
	Tenant      ProblemKind = "tenant"      // the trail exists, but no record of its tenant does
)

// Problem is a sign of tampering or loss.
type Problem struct {
	Seal   int64 // number of the seal
	RowID  int64 // 0 if the problem is not about a row, or the row was deleted
	Kind   ProblemKind
	Detail string
}

// Mark identifies a seal. Keep the last Mark of a chain elsewhere: it reveals a chain that was
// truncated or rebuilt.
type Mark struct {
	Number int64
	Hash   [32]byte
}

// Report is the result of a verification.
type Report struct {
	Seals    int64
	Rows     int64 // that exist and match their seal
	Expired  int64 // deleted after their retention
	Head     Mark  // of the last seal; zero for none
	Problems []Problem

	newest time.Time // of the rows so far
}

func (r *Report) add(seal, row int64, kind ProblemKind, format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, Problem{seal, row, kind, fmt.Sprintf(format, args...)})
	}
}

// seals is what a verification reads; a Store implements it.
type seals interface {
	Seals(ctx context.Context, tenant string) iter.Seq2[Covered, error]
}

// Verify checks a tenant's seals and the rows they cover against each other. known is the Head of
// an earlier Report, or zero.
func Verify(ctx context.Context, store seals, tenant string, known Mark, now time.Time) (Report, error) {
	var r Report
	found := known == Mark{}
	for s, err := range store.Seals(ctx, tenant) {
		if err != nil {
			return Report{}, fmt.Errorf("read the seals: %w", err)
		}
		r.Seals++
		r.seal(s, tenant)
		r.rows(s, now)
		r.Head = Mark{s.Number, s.Hash}
		found = found || r.Head == known
	}
	if !found {
		r.add(known.Number, 0, Known, "there is no seal %d with hash %x: seals were taken away or made anew", known.Number, known.Hash)
	}
	return r, nil
}

// seal checks a seal on its own and against the previous one, r.Head.
func (r *Report) seal(s Covered, tenant string) {
	if s.Number != r.Head.Number+1 {
		r.add(s.Number, 0, Order, "seal %d comes after %d: seals are missing or not in order", s.Number, r.Head.Number)
	}
	if s.Previous != r.Head.Hash {
		r.add(s.Number, 0, Chain, "it does not continue from the seal before it")
	}
	if s.Tenant != tenant || s.digest() != s.Hash || s.Rows != len(s.Digests) || s.Rows != len(s.Expires) {
		r.add(s.Number, 0, Chain, "its hash is not that of what it holds: the seal was changed")
	}
}

// rows checks the remaining rows that a seal covers.
func (r *Report) rows(s Covered, now time.Time) {
	for i := range s.Digests {
		row, there := s.Left[i]
		sum := row.Digest()
		switch {
		case there && bytes.Equal(sum[:], s.Digests[i]) && row.attributionHolds():
			r.Rows++
			r.time(s, row)
		case there:
			r.add(s.Number, row.ID, Changed, "row %d is not what was sealed", row.ID)
		case i >= len(s.Expires) || now.Add(slack).Unix() < s.Expires[i]:
			r.add(s.Number, 0, Missing, "the row at place %d of %d, with digest %s, is gone before its retention has passed", i+1, s.Rows, hex.EncodeToString(s.Digests[i]))
		case time.Unix(s.Expires[i], 0).Before(r.newest.Add(minRetention - slack)):
			r.add(s.Number, 0, Backdated, "the row at place %d of %d, with digest %s, is gone, and was to go at %s: rows before it came later than it can have",
				i+1, s.Rows, hex.EncodeToString(s.Digests[i]), time.Unix(s.Expires[i], 0).UTC().Format(time.RFC3339))
		default:
			r.Expired++
		}
	}
	for _, i := range slices.Sorted(maps.Keys(s.Left)) {
		if i < 0 || i >= len(s.Digests) {
			r.add(s.Number, s.Left[i].ID, Order, "row %d has place %d among the %d rows of its seal", s.Left[i].ID, i+1, s.Rows)
		}
	}
}

// time checks a row's time against the earlier rows and against its seal, which came later.
func (r *Report) time(s Covered, row Row) {
	switch {
	case row.CreatedAt.Before(r.newest.Add(-slack)):
		r.add(s.Number, row.ID, Backdated, "row %d has the time %s, but rows before it have times up to %s", row.ID, row.CreatedAt.Format(time.RFC3339), r.newest.Format(time.RFC3339))
	case row.CreatedAt.After(s.CreatedAt.Add(slack)):
		r.add(s.Number, row.ID, Backdated, "row %d has the time %s, and was sealed at %s already", row.ID, row.CreatedAt.Format(time.RFC3339), s.CreatedAt.Format(time.RFC3339))
	case row.CreatedAt.After(r.newest):
		r.newest = row.CreatedAt
	}
}
