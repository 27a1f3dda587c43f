package source

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

var errSent = errors.New("sent")

// sent is the end of the line: a request that gets here would leave.
type sent struct{}

func (sent) RoundTrip(*http.Request) (*http.Response, error) { return nil, errSent }

func TestPlainHTTP(t *testing.T) {
	cases := []struct {
		url   string
		asked bool
		sent  bool
	}{
		{"http://127.0.0.1:5000/v2/", false, true},
		{"http://[::1]:5000/v2/", false, true},
		{"http://localhost:5000/v2/", false, true},
		{"https://example.com/v2/", false, true},
		{"http://example.com/v2/", false, false},
		{"http://10.0.0.1:5000/v2/", false, false},
		{"http://localhost.example.com/v2/", false, false},
		{"http://example.com/v2/", true, true},
	}
	for _, c := range cases {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tlsUnlessAsked{base: sent{}, plain: c.asked, registry: r.URL.Host}.RoundTrip(r)
		if errors.Is(err, errSent) != c.sent {
			t.Errorf("%s (asked for plain HTTP: %v): %v", c.url, c.asked, err)
		}
		if !c.sent && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", c.url, err)
		}
		_, err = tlsUnlessAsked{base: sent{}, plain: c.asked, registry: "registry.example.com"}.RoundTrip(r)
		if want := c.asked || r.URL.Scheme == "https"; errors.Is(err, errSent) != want {
			t.Errorf("%s after a redirect of another registry (asked for plain HTTP: %v): %v", c.url, c.asked, err)
		}
	}
}

func TestARegistrysUnknownAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := tlsUnlessAsked{base: http.DefaultTransport, registry: r.URL.Host}.RoundTrip(r)
	if err == nil {
		a.Body.Close()
	}
	if err = remoteFault(t.Context(), err, "x:1"); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}
