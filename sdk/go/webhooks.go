package atoll

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Webhook is a message about the end of an execution, or about a session.
type Webhook struct {
	ID        string          `json:"-"`         // the same at every attempt: a message that comes again has it, too
	Event     string          `json:"event"`     // such as execution.completed
	TraceID   string          `json:"trace_id"`  // of an execution
	Timestamp time.Time       `json:"timestamp"` // when what it tells of was
	Result    json.RawMessage `json:"result,omitempty"`
	Body      []byte          `json:"-"` // all of it
}

// WebhookTolerance is how far the time of a message may be from the receiver's.
const WebhookTolerance = 5 * time.Minute

// VerifyWebhook returns the message of a request's body, if its signature is by secret and its
// time within WebhookTolerance of now. Any other one is ErrInvalidSignature. Read the body whole
// before: the signature is of its bytes.
func VerifyWebhook(secret string, header http.Header, body []byte, now time.Time) (Webhook, error) {
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || err != nil {
		return Webhook{}, fmt.Errorf("%w: the message has no webhook-id and webhook-timestamp", ErrInvalidSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)).Abs(); age > WebhookTolerance {
		return Webhook{}, fmt.Errorf("%w: its time is %s from here", ErrInvalidSignature, age.Round(time.Second))
	}
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return Webhook{}, errors.New("the secret begins with whsec_ and is no base64")
		}
	}
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%s.%s", id, at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	for _, given := range strings.Fields(header.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(given), []byte(want)) {
			out := Webhook{ID: id, Body: body}
			return out, json.Unmarshal(body, &out)
		}
	}
	return Webhook{}, fmt.Errorf("%w: no signature of it is by this secret", ErrInvalidSignature)
}
