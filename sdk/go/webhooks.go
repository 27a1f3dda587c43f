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
	ID        string          `json:"-"`         // the same for every attempt, to recognize duplicates
	Event     string          `json:"event"`     // such as execution.completed
	TraceID   string          `json:"trace_id"`  // of an execution
	Timestamp time.Time       `json:"timestamp"` // time of the event
	Result    json.RawMessage `json:"result,omitempty"`
	Body      []byte          `json:"-"` // the whole request body
}

// WebhookTolerance is the largest accepted difference between the times of a message and its receiver.
const WebhookTolerance = 5 * time.Minute

// VerifyWebhook checks the signature of a webhook request and returns its message. If secret did
// not sign the message, or its time differs from the argument now by more than WebhookTolerance,
// the error is ErrInvalidSignature. Pass the exact bytes of the body, because they are signed.
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
