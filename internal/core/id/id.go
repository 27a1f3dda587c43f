// Package id creates and checks ids: a prefix for the kind, "_", and 32 random hexadecimal digits.
package id

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

const chance = 16 // bytes

// New returns a unique, unguessable id with a prefix.
func New(prefix string) string {
	var b [chance]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + "_" + hex.EncodeToString(b[:])
}

// Is reports whether s is an id that New(prefix) can return.
func Is(prefix, s string) bool {
	digits, ok := strings.CutPrefix(s, prefix+"_")
	return ok && len(digits) == 2*chance && strings.Trim(digits, "0123456789abcdef") == ""
}
