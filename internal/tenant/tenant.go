// Package tenant says who calls and what they may use.
//
// For now there is one tenant with one key, the development key of the
// configuration; everything that asks who calls does so through Principal, so
// that stored tenants, keys and plans can take its place.
package tenant

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/fault"
)

// KeyPrefix begins every key that Atoll makes.
const KeyPrefix = "sk-atoll-"

// NewKey returns a random key with 160 bits.
func NewKey() string {
	var b [20]byte
	rand.Read(b[:])
	return KeyPrefix + hex.EncodeToString(b[:])
}

// Principal is an authenticated caller.
type Principal struct {
	Tenant string // who owns what the call makes
	Key    string // name of the key, never the key itself
	Policy execution.Policy
}

// DevKey authenticates callers by one fixed key.
type DevKey struct {
	sum       [sha256.Size]byte
	principal Principal
}

// NewDevKey returns an authenticator that knows key alone and gives its
// callers policy. An empty key authenticates nobody.
func NewDevKey(key string, policy execution.Policy) *DevKey {
	d := &DevKey{principal: Principal{Tenant: "default", Key: "development", Policy: policy}}
	if key == "" {
		rand.Read(d.sum[:])
		return d
	}
	d.sum = sha256.Sum256([]byte(key))
	return d
}

// Authenticate returns the caller whose key token is, or an Unauthorized
// fault. Only digests are compared, in constant time.
func (d *DevKey) Authenticate(_ context.Context, token string) (Principal, error) {
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], d.sum[:]) != 1 {
		return Principal{}, fault.New(fault.Unauthorized, "invalid API key")
	}
	return d.principal, nil
}
