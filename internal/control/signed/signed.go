// Package signed makes and checks texts that stand for a key: tokens of sandboxes, and URLs of the files of
// threads. A text contains what it allows, under a sum that only this installation makes, and is valid as
// long as its key.
package signed

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Signer makes and checks sums of data, as seal.Box does.
type Signer interface {
	Sum(data []byte, purpose string) []byte
	Check(data []byte, purpose string, sum []byte) bool
}

// Keys finds the holder of a key by the key's id, for as long as the key is valid.
type Keys interface {
	Holder(ctx context.Context, tenantID tenant.ID, keyID string) (tenant.Principal, error)
}

const sumSize = 16 // bytes

// sign returns a claim as text.
func sign(s Signer, claim any, purpose string) (string, error) {
	data, err := json.Marshal(claim)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(data, s.Sum(data, purpose)...)), nil
}

// open reads a claim of at most most characters. It reports whether this installation made it for the
// purpose.
func open(s Signer, text, purpose string, most int, claim any) bool {
	if len(text) > most || strings.ContainsAny(text, "\r\n") {
		return false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) < sumSize {
		return false
	}
	data, sum := data[:len(data)-sumSize], data[len(data)-sumSize:]
	return s.Check(data, purpose, sum) && json.Unmarshal(data, claim) == nil
}
