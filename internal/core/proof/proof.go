// Package proof authenticates rights that gateways give to executors. An executor shows a proof to
// any gateway of the installation, which then needs no record of the right.
package proof

import "encoding/binary"

// Signer authenticates data with a key of the installation; *seal.Box implements it. No executor has
// one.
type Signer interface {
	// Sum authenticates data for a purpose of at most 255 bytes.
	Sum(data []byte, purpose string) []byte
	// Check reports whether sum is Sum's for data and purpose.
	Check(data []byte, purpose string, sum []byte) bool
}

// Of returns the proof of a right that consists of parts. Rights with another purpose or other parts
// have other proofs.
func Of(s Signer, purpose string, parts ...string) []byte { return s.Sum(join(parts), purpose) }

// Check reports whether p is the proof of a right. Without a Signer no right has a proof.
func Check(s Signer, p []byte, purpose string, parts ...string) bool {
	return s != nil && len(p) > 0 && s.Check(join(parts), purpose, p)
}

// join writes each part after its length, so that different parts never give the same bytes.
func join(parts []string) []byte {
	var out []byte
	for _, p := range parts {
		out = binary.AppendUvarint(out, uint64(len(p)))
		out = append(out, p...)
	}
	return out
}
