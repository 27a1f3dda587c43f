package outbound

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnUnknownAuthorityNamesItsRemedy(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	get := func(c *http.Client, url string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Do(r)
		if err == nil {
			a.Body.Close()
		}
		return err
	}
	if why, ok := Untrusted(get(&http.Client{}, s.URL), Setting("webhook_ca")); !ok || !strings.Contains(why, "setting webhook_ca") || !strings.Contains(why, "proxy that intercepts TLS") {
		t.Errorf("an unknown authority: %q", why)
	}
	if why, ok := Untrusted(get(&http.Client{}, s.URL), System); !ok || !strings.Contains(why, "SSL_CERT_FILE") {
		t.Errorf("an unknown authority, by the machine's: %q", why)
	}
	if why, ok := Untrusted(get(s.Client(), strings.Replace(s.URL, "127.0.0.1", "localhost", 1)), System); !ok || strings.Contains(why, "SSL_CERT_FILE") || !strings.Contains(why, "not valid") {
		t.Errorf("another host's: %q, %v", why, ok)
	}
	if why, ok := Untrusted(errors.New("other"), System); ok || why != "" {
		t.Errorf("another failure: %q", why)
	}
}
