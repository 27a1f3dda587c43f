package signed

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	filePurpose = "thread-file"
	maxFile     = 16 << 10 // characters
	// FileLife is how long the signature of a file is valid by default.
	FileLife    = 15 * time.Minute
	maxFileLife = 24 * time.Hour
)

// fileClaim is what the signature of a file allows.
type fileClaim struct {
	Method  string `json:"m"`
	Thread  string `json:"t"`
	Path    string `json:"p"`
	Tenant  string `json:"n"` // ids
	Key     string `json:"k"`
	Expires int64  `json:"e"` // Unix seconds
}

// Files makes and checks signatures that read or write one file of a thread. All fields are required.
type Files struct {
	Signer Signer
	Keys   Keys
}

// FileScope returns the scope that a method on a file needs.
func FileScope(method string) tenant.Scope {
	if method == http.MethodPut {
		return tenant.ScopeExecute
	}
	return tenant.ScopeRead
}

// Sign signs a method on a file of a thread. It returns the file's path without slashes around it.
func (f *Files) Sign(by *tenant.Principal, method, thread, path string, lasts time.Duration) (signature, file string, expires time.Time, err error) {
	file = strings.Trim(path, "/")
	switch {
	case !by.May(FileScope(method)):
		return "", "", expires, fault.New(fault.Forbidden, "this key lacks the scope %q, which writing needs", FileScope(method))
	case file == "":
		return "", "", expires, fault.New(fault.Invalid, "path is required: the file, from the home")
	case lasts < time.Second || lasts > maxFileLife:
		return "", "", expires, fault.New(fault.Invalid, "expires_in must be 1 to %d seconds", int(maxFileLife/time.Second))
	}
	expires = time.Now().Add(lasts).Truncate(time.Second).UTC()
	signature, err = sign(f.Signer, fileClaim{Method: method, Thread: thread, Path: file, Tenant: by.Tenant.ID, Key: by.Key.ID, Expires: expires.Unix()}, filePurpose)
	return signature, file, expires, err
}

// Check returns the holder of the key behind a signature, which is valid for exactly the file and method
// that it was made for.
func (f *Files) Check(ctx context.Context, signature, method, thread, path string) (tenant.Principal, error) {
	refusal := fault.New(fault.Forbidden, "the signed URL is not valid, or has expired; ask for another")
	var c fileClaim
	if !open(f.Signer, signature, filePurpose, maxFile, &c) {
		return tenant.Principal{}, refusal
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if c.Method != method || c.Thread != thread || c.Path != strings.Trim(path, "/") || time.Now().Unix() >= c.Expires {
		return tenant.Principal{}, refusal
	}
	holder, err := f.Keys.Holder(ctx, c.Tenant, c.Key)
	if fault.KindOf(err) == fault.Unauthorized || err == nil && !holder.May(FileScope(method)) {
		return tenant.Principal{}, refusal
	}
	return holder, err
}
