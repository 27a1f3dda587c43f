package thread

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// A signed URL reads or writes one file of a thread, without a key, until a time, and for
// as long as the key that asked for it may. What it allows is in it, under a sum that only
// this installation makes.

// Signer makes and checks sums of data, as seal.Box does.
type Signer interface {
	Sum(data []byte, purpose string) []byte
	Check(data []byte, purpose string, sum []byte) bool
}

const (
	signatureParam   = "signature"
	signaturePurpose = "thread-file"
	signatureSum     = 16       // bytes of a sum
	maxSignature     = 16 << 10 // characters
)

// claim is what a signed URL allows.
type claim struct {
	Method  string `json:"m"`
	Thread  string `json:"t"`
	Path    string `json:"p"`
	Tenant  string `json:"n"` // ids
	Key     string `json:"k"`
	Expires int64  `json:"e"` // Unix seconds
}

const (
	defaultSigned = 15 * time.Minute
	maxSigned     = 24 * time.Hour
)

func (h *Handlers) sign(c *httpapi.Call, in *SignRequest) (SignedURL, error) {
	id, err := idOf(c)
	if err != nil {
		return SignedURL{}, err
	}
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	lasts := defaultSigned
	if in.ExpiresIn != nil {
		lasts = in.ExpiresIn.Duration()
	}
	return h.signFile(c.Caller, in.Method, id, *in.Path, lasts)
}

// scopeOf is the scope that a method on a file needs.
func scopeOf(method string) tenant.Scope {
	if method == http.MethodPut {
		return tenant.ScopeExecute
	}
	return tenant.ScopeRead
}

// signFile makes a URL for a method on a file of a thread.
func (h *Handlers) signFile(by *tenant.Principal, method, id, path string, lasts time.Duration) (SignedURL, error) {
	switch {
	case !by.May(scopeOf(method)):
		return SignedURL{}, fault.New(fault.Forbidden, "this key lacks the scope %q, which writing needs", scopeOf(method))
	case strings.Trim(path, "/") == "":
		return SignedURL{}, httpapi.Invalid("path is required: the file, from the home")
	case lasts < time.Second || lasts > maxSigned:
		return SignedURL{}, httpapi.Invalid("expires_in must be 1 to %d seconds", int(maxSigned/time.Second))
	}
	at := time.Now().Add(lasts).Truncate(time.Second)
	allowed := claim{Method: method, Thread: id, Path: strings.Trim(path, "/"), Tenant: by.Tenant.ID, Key: by.Key.ID, Expires: at.Unix()}
	data, err := json.Marshal(allowed)
	if err != nil {
		return SignedURL{}, err
	}
	token := base64.RawURLEncoding.EncodeToString(append(data, h.Signer.Sum(data, signaturePurpose)...))
	u := url.URL{Path: "/v1/threads/" + id + "/files/" + allowed.Path, RawQuery: signatureParam + "=" + token}
	return SignedURL{URL: u.String(), Method: allowed.Method, ExpiresAt: at.UTC()}, nil
}

// signed checks a signed URL, which is good for exactly what it was made for.
func (h *Handlers) signed(call *httpapi.Call) (o thread.Owner, id string, err error) {
	refusal := fault.New(fault.Forbidden, "the signed URL is not valid, or has expired; ask for another")
	r, token := call.R, call.Text(signatureParam)
	if len(token) > maxSignature || strings.ContainsAny(token, "\r\n") {
		return o, "", refusal
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) < signatureSum {
		return o, "", refusal
	}
	data, sum := data[:len(data)-signatureSum], data[len(data)-signatureSum:]
	var c claim
	if !h.Signer.Check(data, signaturePurpose, sum) || json.Unmarshal(data, &c) != nil {
		return o, "", refusal
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if c.Method != method || c.Thread != r.PathValue("thread_id") || c.Path != strings.Trim(r.PathValue("path"), "/") || time.Now().Unix() >= c.Expires {
		return o, "", refusal
	}
	scope := scopeOf(method)
	holder, err := h.Keys.Holder(r.Context(), c.Tenant, c.Key)
	if fault.KindOf(err) == fault.Unauthorized || err == nil && !holder.May(scope) {
		return o, "", refusal
	}
	if err == nil {
		connections.Trust(r.Context(), holder.Tenant.ID)
		err = call.Charge(&holder)
	}
	return ownerOf(&holder), c.Thread, err
}
