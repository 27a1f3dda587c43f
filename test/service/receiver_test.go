package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// hook is a webhook as it arrived.
type hook struct {
	Event   string
	TraceID string `json:"trace_id"`
	Result  struct {
		Success  bool
		Stdout   string
		ExitCode int `json:"exit_code"`
	}
	id        string
	signature string
	body      []byte
}

// receiver is a real HTTPS server that webhooks are sent to.
type receiver struct {
	*httptest.Server
	ca string // path of its certificate

	mu   sync.Mutex
	got  map[string][]hook // by trace id
	fail int               // so many requests are answered with 500
	news chan struct{}     // closed and made anew with each webhook
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: map[string][]hook{}, news: make(chan struct{})}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		h := hook{body: body, id: req.Header.Get("Webhook-Id"), signature: req.Header.Get("X-Atoll-Signature")}
		if err == nil {
			err = json.Unmarshal(body, &h)
		}
		if err != nil {
			return // cut off by a dying server
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.fail > 0 {
			r.fail--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.got[h.TraceID] = append(r.got[h.TraceID], h)
		close(r.news)
		r.news = make(chan struct{})
	}))
	t.Cleanup(r.Close)
	r.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(r.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// settings let a server send webhooks to r.
func (r *receiver) settings() []string {
	return []string{"ATOLL_WEBHOOK_CA=" + r.ca, "ATOLL_WEBHOOK_ALLOW=127.0.0.1"}
}

// await returns what has arrived for an execution, once that is n webhooks or
// patience is over.
func (r *receiver) await(traceID string, n int, patience time.Duration) []hook {
	over := time.After(patience)
	for {
		r.mu.Lock()
		got, news := slices.Clone(r.got[traceID]), r.news
		r.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-news:
		case <-over:
			return got
		}
	}
}

// signed reports whether a webhook's signature is secret's.
func (h *hook) signed(secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(h.body)
	return h.signature == "sha256="+hex.EncodeToString(mac.Sum(nil))
}
