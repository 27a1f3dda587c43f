package redteam

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRefused has servers on which nothing answers the program, and whose record says
// why, or does not.
func TestRefused(t *testing.T) {
	for record, held := range map[string]bool{
		`["refused 10.0.0.1:80 (floor)"]`:         true,
		`["10.0.0.1:80"]`:                         false,
		`["refused 10.0.0.1:80 (allowed_hosts)"]`: false,
		`[]`: false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/audit") {
				_, _ = io.WriteString(w, `{"data":[{"outbound_hosts":`+record+`}]}`)
				return
			}
			_, _ = io.WriteString(w, `{"success":true,"stdout":"tried\n"}`)
		}))
		a, err := newArena(t.Context(), Options{URL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		a.net = a.as("k")
		err = floorConnects("10.0.0.1:80")(t.Context(), a)
		if _, ok := errors.AsType[*finding](err); ok == held || held && err != nil {
			t.Errorf("%s: %v", record, err)
		}
		s.Close()
	}
}
