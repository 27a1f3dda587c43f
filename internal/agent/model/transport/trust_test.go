package transport

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/outbound"
)

func TestAProvidersUnknownAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	rt := New(allow)
	defer rt.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Client(rt, "key").Do(r)
	if err == nil {
		a.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the provider cannot be reached: its certificate is signed by an authority") || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}
