package tenant

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// KeyPrefix begins every key that Atoll makes.
const KeyPrefix = "sk-atoll-"

// NewKey returns a random key with 160 bits.
func NewKey() string {
	var b [20]byte
	rand.Read(b[:])
	return KeyPrefix + hex.EncodeToString(b[:])
}

// HashKey is what is stored of a key. It has more entropy than can be guessed,
// so that a fast digest is enough.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// NewID returns an unguessable id with a prefix such as "ten".
func NewID(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return prefix + "_" + hex.EncodeToString(b[:])
}

// TicketPrefix begins every ticket for a terminal.
const TicketPrefix = "tkt-atoll-"

// IsSecret reports whether a text has the look of a key, token or ticket.
func IsSecret(text string) bool {
	return strings.HasPrefix(text, KeyPrefix) || strings.HasPrefix(text, TokenPrefix) || strings.HasPrefix(text, TicketPrefix)
}
