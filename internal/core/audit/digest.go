package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"math"
	"slices"
	"time"
)

// digest writes values so that no two lists of them look the same: numbers have
// one length, texts are preceded by theirs.
type digest struct{ h hash.Hash }

// newDigest names what is digested and in which form, so that a digest of one
// thing is none of another.
func newDigest(kind string) digest {
	d := digest{sha256.New()}
	d.text(kind)
	return d
}

func (d digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.h.Write(b[:])
}

func (d digest) bytes(p []byte) {
	d.number(int64(len(p)))
	d.h.Write(p)
}

func (d digest) text(s string) { d.bytes([]byte(s)) }

func (d digest) flag(b bool) {
	n := int64(0)
	if b {
		n = 1
	}
	d.number(n)
}

func (d digest) sum() [32]byte { return [32]byte(d.h.Sum(nil)) }

// Digest is the canonical digest of a row: of every field, as the store keeps
// it. Stored seals hold such digests, so its form never changes; another form
// needs another name.
func (r Row) Digest() [32]byte {
	form := "atoll audit row 1"
	if len(r.Mounts) > 0 { // which the first form does not have
		form = "atoll audit row 2"
	}
	d := newDigest(form)
	d.number(r.ID)
	for _, s := range []string{
		r.TraceID, r.Tenant, r.Key, r.Environment, r.Source, r.Agent, r.SessionID, r.Language, string(r.ExitStatus), r.FailureReason,
	} {
		d.text(s)
	}
	d.bytes(r.CodeSHA256[:])
	for _, n := range []int64{int64(r.ExitCode), r.DurationMS, r.StdoutBytes, r.StderrBytes, r.PeakMemory, int64(r.Retention), r.CreatedAt.UnixMicro()} {
		d.number(n)
	}
	d.flag(r.StdoutTruncated)
	d.flag(r.StderrTruncated)
	d.number(int64(len(r.OutboundHosts)))
	for _, host := range r.OutboundHosts {
		d.text(host)
	}
	d.number(int64(len(r.Metadata)))
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		d.text(key)
		d.text(r.Metadata[key])
	}
	if len(r.Mounts) > 0 {
		d.number(int64(len(r.Mounts)))
	}
	for _, m := range r.Mounts {
		d.text(m)
	}
	return d.sum()
}

// expires is when a row may be deleted, in Unix seconds.
func (r Row) expires() int64 {
	return r.CreatedAt.Add(min(r.Retention, math.MaxInt64/2)).Unix()
}

// digest is the hash of a seal: of all that comes before Hash in it.
func (s Seal) digest() [32]byte {
	d := newDigest("atoll audit seal 1")
	d.text(s.Tenant)
	d.number(s.Number)
	d.number(int64(s.Rows))
	d.bytes(s.Previous[:])
	d.number(int64(len(s.Digests)))
	for _, row := range s.Digests {
		d.bytes(row)
	}
	d.number(int64(len(s.Expires)))
	for _, at := range s.Expires {
		d.number(at)
	}
	return d.sum()
}

// next is the seal after last that covers rows.
func next(last Seal, tenant string, rows []Row) Seal {
	s := Seal{Tenant: tenant, Number: last.Number + 1, Rows: len(rows), Previous: last.Hash, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
	for _, r := range rows {
		sum := r.Digest()
		s.Digests = append(s.Digests, sum[:])
		s.Expires = append(s.Expires, r.expires())
	}
	s.Hash = s.digest()
	return s
}
