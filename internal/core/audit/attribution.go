package audit

import (
	"encoding/base64"
	"maps"
	"math"
)

// attribution is a key of Metadata that commits to whose work a call was and what it cost. The
// digest of a row covers Metadata in every version, so that a server of the version before,
// which during an upgrade seals rows that it does not know all columns of, seals these too.
// It is longer than a caller's keys may be, so that a caller's own metadata is never taken for it.
const attribution = "attribution: a digest of turn, sandbox, thread and cost"

// attributed reports whether r has fields that only the commitment covers.
func (r Row) attributed() bool {
	return r.Turn != "" || r.Sandbox != "" || r.Thread != "" || r.Credits != 0 || r.Cost != 0
}

// commitment is a digest of those fields.
func (r Row) commitment() string {
	d := newDigest("atoll audit attribution 1")
	for _, s := range []string{r.Turn, r.Sandbox, r.Thread} {
		d.text(s)
	}
	d.number(int64(math.Float64bits(r.Credits)))
	d.number(int64(r.Cost))
	sum := d.sum()
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Committed returns r as the store writes it: with the commitment in its Metadata.
func (r Row) Committed() Row {
	r = r.Bare()
	if r.attributed() {
		about := map[string]string{attribution: r.commitment()}
		maps.Copy(about, r.Metadata)
		r.Metadata = about
	}
	return r
}

// Bare returns r without the commitment, as lists show it.
func (r Row) Bare() Row {
	if _, ok := r.Metadata[attribution]; !ok {
		return r
	}
	about := maps.Clone(r.Metadata)
	if delete(about, attribution); len(about) == 0 {
		about = nil
	}
	r.Metadata = about
	return r
}

// attributionHolds reports whether the commitment is that of the fields.
func (r Row) attributionHolds() bool {
	committed, ok := r.Metadata[attribution]
	if !r.attributed() {
		return !ok
	}
	return committed == r.commitment()
}
