package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// secretPrefix begins secrets in the form of the Standard Webhooks
// specification: base64 follows.
const secretPrefix = "whsec_"

// maxSecret is the most bytes of a secret.
const maxSecret = 256

// CheckSecret returns an Invalid fault unless secret can sign. Empty is no
// secret.
func CheckSecret(secret string) error {
	if len(secret) > maxSecret {
		return fault.New(fault.Invalid, "the webhook secret must be at most %d bytes", maxSecret)
	}
	for i := range len(secret) {
		if secret[i] <= ' ' || secret[i] > '~' {
			return fault.New(fault.Invalid, "the webhook secret must be printable ASCII without spaces")
		}
	}
	if text, ok := strings.CutPrefix(secret, secretPrefix); ok {
		if key, err := decode(text); err != nil || len(key) == 0 {
			return fault.New(fault.Invalid, "a webhook secret that begins with %s must continue in base64", secretPrefix)
		}
	}
	return nil
}

func decode(text string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

// standardKey is the key that Standard Webhooks signs with: what a whsec_ secret
// encodes, or else the secret's own bytes.
func standardKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, secretPrefix); ok {
		if key, err := decode(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// MessageID names the message about an execution. It is the same at every
// attempt, so that receivers can tell a repetition.
func MessageID(traceID string) string { return "evt_" + strings.TrimPrefix(traceID, "trc_") }

// sign sets the headers that name a message and, with a secret, those
// that prove where it comes from.
func sign(h http.Header, id, secret string, body []byte, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	if secret == "" {
		return
	}
	h.Set("X-Atoll-Signature", "sha256="+hex.EncodeToString(mac([]byte(secret), body)))
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac(standardKey(secret), []byte(id+"."+at+"."), body)))
}
