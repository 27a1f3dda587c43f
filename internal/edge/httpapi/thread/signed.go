package thread

import (
	"net/http"
	"net/url"
	"time"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// A signed URL reads or writes one file of a thread, without a key, until a time, and for
// as long as the key that asked for it may.

const signatureParam = "signature"

func (h *Handlers) sign(c *httpapi.Call, in *SignRequest) (SignedURL, error) {
	id, err := idOf(c)
	if err != nil {
		return SignedURL{}, err
	}
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	lasts := signed.FileLife
	if in.ExpiresIn != nil {
		lasts = in.ExpiresIn.Duration()
	}
	return h.signFile(c.Caller, in.Method, id, *in.Path, lasts)
}

// signFile makes a URL for a method on a file of a thread.
func (h *Handlers) signFile(by *tenant.Principal, method, id, path string, lasts time.Duration) (SignedURL, error) {
	signature, file, expires, err := h.Signed.Sign(by, method, id, path, lasts)
	if err != nil {
		return SignedURL{}, err
	}
	u := url.URL{Path: "/v1/threads/" + id + "/files/" + file, RawQuery: signatureParam + "=" + signature}
	return SignedURL{URL: u.String(), Method: method, ExpiresAt: expires}, nil
}

// signed checks a signed URL.
func (h *Handlers) signed(c *httpapi.Call) (o thread.Owner, id string, err error) {
	id = c.Path("thread_id")
	holder, err := h.Signed.Check(c.Context(), c.Text(signatureParam), c.R.Method, id, c.Path("path"))
	if err != nil {
		return o, "", err
	}
	connections.Trust(c.Context(), holder.Tenant.ID)
	return ownerOf(&holder), id, c.Charge(&holder)
}
