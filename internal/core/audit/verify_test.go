package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"
)

// trail is a chain of seals in memory, to be spoilt.
type trail []Covered

func (t trail) Seals(context.Context, string) iter.Seq2[Covered, error] {
	return func(yield func(Covered, error) bool) {
		for _, s := range t {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// clone copies a trail, so that spoiling one leaves the other.
func (t trail) clone() trail {
	out := slices.Clone(t)
	for i := range out {
		out[i].Left = maps.Clone(out[i].Left)
		out[i].Digests = slices.Clone(out[i].Digests)
		for j := range out[i].Digests {
			out[i].Digests[j] = slices.Clone(out[i].Digests[j])
		}
		out[i].Expires = slices.Clone(out[i].Expires)
	}
	return out
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// newTrail seals rows in batches of different sizes.
func newTrail(rng *rand.Rand, seals int) trail {
	var out trail
	var last Seal
	id := int64(0)
	for range seals {
		rows := make([]Row, 1+rng.IntN(5))
		left := map[int]Row{}
		for i := range rows {
			id++
			rows[i] = Row{
				ID: id, TraceID: fmt.Sprint("trc_", id), Tenant: "ten_1", Key: "key_1", Environment: "env_1", Source: "execute_code",
				Agent: "agent", SessionID: "turn", Language: "python", CodeSHA256: [32]byte{byte(id)}, ExitStatus: OK, ExitCode: 0,
				DurationMS: 12, StdoutBytes: id, StderrBytes: 1, StdoutTruncated: id%2 == 0, PeakMemory: 1 << 20,
				OutboundHosts: []string{"example.com", "example.org"}, Mounts: []string{"team/a:rw", "reports/:ro"}, Metadata: map[string]string{"a": "b", "c": "d"},
				Retention: 30 * 24 * time.Hour, CreatedAt: start.Add(time.Duration(id) * time.Minute),
			}
			left[i] = rows[i]
		}
		last = next(last, "ten_1", rows)
		out = append(out, Covered{last, left})
	}
	return out
}

func check(t *testing.T, tr trail, known Mark, now time.Time) Report {
	t.Helper()
	r, err := Verify(t.Context(), tr, "ten_1", known, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func kinds(r Report) map[ProblemKind]int {
	out := map[ProblemKind]int{}
	for _, p := range r.Problems {
		out[p.Kind]++
	}
	return out
}

var soon = start.Add(24 * time.Hour)

func TestAWholeTrail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	if r := check(t, nil, Mark{}, soon); len(r.Problems) != 0 || r.Head != (Mark{}) {
		t.Errorf("an empty trail: %+v", r)
	}
	for n := 1; n < 30; n++ {
		tr := newTrail(rng, n)
		rows := int64(0)
		for _, s := range tr {
			rows += int64(len(s.Left))
		}
		r := check(t, tr, Mark{}, soon)
		if len(r.Problems) != 0 || r.Seals != int64(n) || r.Rows != rows || r.Head.Number != int64(n) {
			t.Fatalf("%d seals: %+v", n, r)
		}
		for _, s := range tr { // every earlier head is still held
			if r := check(t, tr, Mark{s.Number, s.Hash}, soon); len(r.Problems) != 0 {
				t.Fatalf("seal %d is not found: %+v", s.Number, r)
			}
		}
	}
}

// spoil changes a value to another one.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + int64(24*time.Hour))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Array:
		v.Index(v.Len() - 1).SetUint(v.Index(v.Len()-1).Uint() ^ 1)
	case reflect.Slice:
		v.Set(v.Slice(0, v.Len()-1))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "b", "c": "e"}))
	case reflect.Struct:
		v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Microsecond)))
	default:
		panic("no way to spoil " + v.Kind().String())
	}
}

func TestEveryChangeOfARowShows(t *testing.T) {
	whole := newTrail(rand.New(rand.NewPCG(2, 2)), 4)
	fields := reflect.TypeFor[Row]()
	for s := range whole {
		for place := range whole[s].Left {
			for f := range fields.NumField() {
				spoilt := whole.clone()
				row := spoilt[s].Left[place]
				if fields.Field(f).Name == "Text" {
					continue // the store keeps it outside the row
				}
				spoil(reflect.ValueOf(&row).Elem().Field(f))
				spoilt[s].Left[place] = row
				if r := check(t, spoilt, Mark{}, soon); kinds(r)[Changed] != 1 || len(r.Problems) != 1 {
					t.Errorf("a change of %s: %+v", fields.Field(f).Name, r.Problems)
				}
			}
		}
	}
}

func TestEveryChangeOfASealShows(t *testing.T) {
	whole := newTrail(rand.New(rand.NewPCG(3, 3)), 4)
	fields := reflect.TypeFor[Seal]()
	for s := range whole {
		for f := range fields.NumField() {
			if fields.Field(f).Name == "CreatedAt" {
				continue // says when it was stored, and is not part of the chain
			}
			spoilt := whole.clone()
			spoil(reflect.ValueOf(&spoilt[s].Seal).Elem().Field(f))
			if r := check(t, spoilt, Mark{}, soon); len(r.Problems) == 0 {
				t.Errorf("a change of %s does not show", fields.Field(f).Name)
			}
		}
		for i := range whole[s].Digests {
			spoilt := whole.clone()
			spoilt[s].Digests[i][7] ^= 1
			if r := check(t, spoilt, Mark{}, soon); len(r.Problems) < 2 {
				t.Errorf("a change of a digest: %+v", r.Problems)
			}
			spoilt = whole.clone()
			spoilt[s].Expires[i]--
			if r := check(t, spoilt, Mark{}, soon); len(r.Problems) == 0 {
				t.Error("a change of an expiry does not show")
			}
		}
	}
}

func TestEveryRemovalShows(t *testing.T) {
	whole := newTrail(rand.New(rand.NewPCG(4, 4)), 6)
	head := Mark{whole[5].Number, whole[5].Hash}
	for s := range whole {
		for place := range whole[s].Left {
			spoilt := whole.clone()
			delete(spoilt[s].Left, place)
			if r := check(t, spoilt, Mark{}, soon); kinds(r)[Missing] != 1 || len(r.Problems) != 1 {
				t.Errorf("a removed row: %+v", r.Problems)
			}
		}
		gone := slices.Delete(whole.clone(), s, s+1)
		if r := check(t, gone, head, soon); len(r.Problems) == 0 {
			t.Errorf("seal %d can be removed", s+1)
		}
		if s == len(whole)-1 {
			if r := check(t, gone, head, soon); kinds(r)[Known] != 1 {
				t.Errorf("a trail that was cut short: %+v", r.Problems)
			}
			continue
		}
		if r := check(t, gone, Mark{}, soon); kinds(r)[Order] == 0 || kinds(r)[Chain] == 0 {
			t.Errorf("seal %d is gone: %+v", s+1, r.Problems)
		}
		swapped := whole.clone()
		swapped[s], swapped[s+1] = swapped[s+1], swapped[s]
		if r := check(t, swapped, Mark{}, soon); kinds(r)[Order] == 0 {
			t.Errorf("seals %d and %d change places: %+v", s+1, s+2, r.Problems)
		}
	}
	// Made anew from the start, a chain is whole in itself, but not the one known.
	again := newTrail(rand.New(rand.NewPCG(5, 5)), 6)
	if r := check(t, again, Mark{}, soon); len(r.Problems) != 0 {
		t.Errorf("got %+v", r.Problems)
	}
	if r := check(t, again, head, soon); kinds(r)[Known] != 1 {
		t.Errorf("a trail made anew: %+v", r.Problems)
	}
	if r := check(t, nil, head, soon); kinds(r)[Known] != 1 {
		t.Errorf("no trail: %+v", r.Problems)
	}
}

func TestRowsInOtherPlacesShow(t *testing.T) {
	whole := newTrail(rand.New(rand.NewPCG(6, 6)), 8)
	for s := range whole {
		if len(whole[s].Left) < 2 {
			continue
		}
		swapped := whole.clone()
		swapped[s].Left[0], swapped[s].Left[1] = swapped[s].Left[1], swapped[s].Left[0]
		if r := check(t, swapped, Mark{}, soon); kinds(r)[Changed] != 2 {
			t.Errorf("got %+v", r.Problems)
		}
		outside := whole.clone()
		outside[s].Left[len(outside[s].Digests)] = Row{ID: 99}
		if r := check(t, outside, Mark{}, soon); kinds(r)[Order] != 1 {
			t.Errorf("got %+v", r.Problems)
		}
	}
	if r, err := Verify(t.Context(), whole, "ten_2", Mark{}, soon); err != nil || kinds(r)[Chain] != len(whole) {
		t.Errorf("another tenant's chain: %+v %v", r.Problems, err)
	}
}

func TestWhatIsGoneByAgeIsFine(t *testing.T) {
	tr := newTrail(rand.New(rand.NewPCG(7, 7)), 3)
	rows := int64(0)
	for s := range tr {
		rows += int64(len(tr[s].Digests))
		tr[s].Left = nil
	}
	later := start.Add(31 * 24 * time.Hour)
	if r := check(t, tr, Mark{}, later); len(r.Problems) != 0 || r.Expired != rows || r.Rows != 0 {
		t.Errorf("got %+v", r)
	}
	// To the second by the database's clock, which may be another one.
	expires := time.Unix(tr[0].Expires[0], 0)
	if !expires.Equal(start.Add(time.Minute + 30*24*time.Hour).Truncate(time.Second)) {
		t.Errorf("the first row expires %s", expires)
	}
	for early, want := range map[time.Duration]int{slack: 0, slack + time.Second: 1} {
		if r := check(t, newOne(), Mark{}, expires.Add(-early)); kinds(r)[Missing] != want {
			t.Errorf("%s early: %+v", early, r.Problems)
		}
	}
}

// newOne is a trail of one row, which is gone.
func newOne() trail {
	row := Row{ID: 1, Tenant: "ten_1", Retention: 30 * 24 * time.Hour, CreatedAt: start.Add(time.Minute)}
	return trail{{Seal: next(Seal{}, "ten_1", []Row{row})}}
}

func TestReportsAreBounded(t *testing.T) {
	rows := make([]Row, 3000)
	for i := range rows {
		rows[i] = Row{ID: int64(i), Tenant: "ten_1", CreatedAt: start, Retention: 24 * time.Hour}
	}
	tr := trail{{Seal: next(Seal{}, "ten_1", rows)}}
	if r := check(t, tr, Mark{}, start); len(r.Problems) != maxProblems {
		t.Errorf("%d problems", len(r.Problems))
	}
}

// broken is a store that cannot be read to the end.
type broken struct{ trail }

func (b broken) Seals(ctx context.Context, tenant string) iter.Seq2[Covered, error] {
	return func(yield func(Covered, error) bool) {
		for s, err := range b.trail.Seals(ctx, tenant) {
			if !yield(s, err) {
				return
			}
		}
		yield(Covered{}, errBroken)
	}
}

var errBroken = errors.New("the database is away")

func TestHalfAReadingIsNoReport(t *testing.T) {
	r, err := Verify(t.Context(), broken{newTrail(rand.New(rand.NewPCG(8, 8)), 3)}, "ten_1", Mark{}, soon)
	if !errors.Is(err, errBroken) || r.Seals != 0 {
		t.Errorf("got %+v %v", r, err)
	}
}

// The digests are stored for as long as the trail is: their form must not
// change unnoticed.
func TestDigestsStay(t *testing.T) {
	tr := newTrail(rand.New(rand.NewPCG(9, 9)), 2)
	if got := fmt.Sprintf("%x", tr[0].Digests[0]); got != goldenMounts {
		t.Errorf("the digest of a row with mounts is %s", got)
	}
	row := tr[0].Left[0]
	row.Mounts = nil
	if got := fmt.Sprintf("%x", row.Digest()); got != goldenRow {
		t.Errorf("the digest of a row is %s", got)
	}
	if got := fmt.Sprintf("%x", next(Seal{}, "ten_1", []Row{row}).Hash); got != goldenSeal {
		t.Errorf("the hash of a seal is %s", got)
	}
}

const (
	goldenMounts = "296078540e5c738cac287b60c7d09d064496f3857f689b7fee76d7a9703cc1f3"
	goldenRow    = "b1f83b1956abe814ecbd7cbc758e4533e272f938e46a41406f8267ce8d5efa56"
	goldenSeal   = "4869278eb08d4d3994eeebe0161eab69a932210e336ec53108d9566ef52895df"
)

// TestAttributionShows checks that verification detects every change to the attribution of a
// sealed row, also if a version without attribution sealed it.
func TestAttributionShows(t *testing.T) {
	whole := newTrail(rand.New(rand.NewPCG(10, 10)), 1)
	row := whole[0].Left[0]
	row.Turn, row.Credits = "turn_1", 1
	row = row.Committed()
	seal := next(Seal{}, "ten_1", []Row{row})
	sealed := func(r Row) trail { return trail{{seal, map[int]Row{0: r}}} }
	if r := check(t, sealed(row), Mark{}, soon); len(r.Problems) != 0 {
		t.Fatalf("an unchanged row: %+v", r.Problems)
	}
	for what, change := range map[string]func(*Row){
		"turn": func(r *Row) { r.Turn = "turn_2" }, "no turn": func(r *Row) { r.Turn, r.Credits = "", 0 },
		"sandbox": func(r *Row) { r.Sandbox = "sb" }, "thread": func(r *Row) { r.Thread = "th" },
		"credits": func(r *Row) { r.Credits = 2 }, "cost": func(r *Row) { r.Cost = 2 },
		"another commitment": func(r *Row) { r.Turn = "turn_2"; *r = r.Committed() },
		"no commitment":      func(r *Row) { *r = r.Bare() },
	} {
		changed := row
		if change(&changed); kinds(check(t, sealed(changed), Mark{}, soon))[Changed] != 1 {
			t.Errorf("%s: the change was not detected", what)
		}
	}
	if own := (Row{Metadata: map[string]string{attribution: "x"}}).Committed(); own.Metadata != nil {
		t.Errorf("a commitment from elsewhere is kept: %v", own.Metadata)
	}
	if bare := row.Bare(); bare.Metadata[attribution] != "" || row.Metadata[attribution] == "" {
		t.Error("the commitment is shown, or was taken from the row itself")
	}
}

// TestOwnAttribution checks that a caller's own metadata key named attribution stays the caller's,
// also in a row that an earlier version sealed.
func TestOwnAttribution(t *testing.T) {
	const most = 40 // execution.MaxMetadataKey, whose package needs this one
	if n := utf8.RuneCountInString(attribution); n <= most {
		t.Errorf("a caller can name metadata like the commitment, which has %d characters", n)
	}
	row := newTrail(rand.New(rand.NewPCG(10, 10)), 1)[0].Left[0]
	row.Metadata = map[string]string{"attribution": "team-a"}
	for what, row := range map[string]Row{"earlier": row, "now": row.Committed()} {
		if got := row.Bare().Metadata["attribution"]; got != "team-a" {
			t.Errorf("%s: the caller's metadata is %q", what, got)
		}
		if r := check(t, trail{{next(Seal{}, "ten_1", []Row{row}), map[int]Row{0: row}}}, Mark{}, soon); len(r.Problems) != 0 {
			t.Errorf("%s: a row with metadata of the caller's own: %+v", what, r.Problems)
		}
	}
}
