package tenant

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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
