// Package check contains checks that many tests share.
package check

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Must stops the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Kind reports an error that is not a fault of a kind. what names the call.
func Kind(t testing.TB, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%s: got %v (kind %d), want kind %d", what, err, fault.KindOf(err), kind)
	}
}

// Same reports values that are not deeply equal.
func Same(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// UntrustedServer starts an HTTPS server whose certificate no client trusts.
func UntrustedServer(t testing.TB) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
