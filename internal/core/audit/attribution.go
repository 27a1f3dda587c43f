package audit

import (
	"encoding/base64"
	"maps"
	"math"
)

// attribution is a Metadata key. Its value commits to the fields that attribute a call and its
// cost. Every version includes Metadata in a row's digest. A server of the previous version
// therefore also seals these fields during an upgrade, although it does not know their columns.
// The key is longer than callers' keys may be, so it never collides with one.
const attribution = "attribution: a digest of turn, sandbox, thread and cost"

// attributed reports whether r sets a field that only the commitment covers.
func (r Row) attributed() bool {
	return r.Turn != "" || r.Sandbox != "" || r.Thread != "" || r.Credits != 0 || r.Cost != 0
}

// commitment returns the digest of the fields that only the commitment covers.
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

// Committed returns r with the commitment in its Metadata, as the store writes it.
func (r Row) Committed() Row {
	r = r.Bare()
	if r.attributed() {
		about := map[string]string{attribution: r.commitment()}
		maps.Copy(about, r.Metadata)
		r.Metadata = about
	}
	return r
}

// Bare returns r without the commitment, as lists return it.
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

// attributionHolds reports whether the commitment in Metadata matches the fields.
func (r Row) attributionHolds() bool {
	committed, ok := r.Metadata[attribution]
	if !r.attributed() {
		return !ok
	}
	return committed == r.commitment()
}
