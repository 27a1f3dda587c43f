package service

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestHeaderTricks sends heads by which one request could pass for two, for
// of another key, or for another than it is, byte by byte.
func TestHeaderTricks(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "tricks", "pro")
	const body = `{"code":"print('ran')"}`
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	auth := "Authorization: Bearer " + key + "\r\n"
	const forged = "trc_00000000000000000000000000000001"
	ran := 0
	for name, c := range map[string]struct {
		line   string // POST /v1/sandbox/execute if it is empty
		head   string // besides Host and Content-Type
		body   string
		status string // what the answer's may begin with
	}{
		"plain":                     {head: auth + length, body: body, status: "200"},
		"names in another case":     {head: "aUTHORIZATION: bearer " + key + "\r\ncontent-LENGTH: " + fmt.Sprint(len(body)) + "\r\n", body: body, status: "200"},
		"a trace id of one's own":   {head: auth + length + "X-Trace-Id: " + forged + "\r\nTraceparent: 00-00000000000000000000000000000001-0000000000000001-01\r\n", body: body, status: "200"},
		"two lengths":               {head: auth + length + "Content-Length: 3\r\n", body: body, status: "400"},
		"a length with a sign":      {head: auth + "Content-Length: +23\r\n", body: body, status: "400"},
		"a list of lengths":         {head: auth + "Content-Length: 23, 23\r\n", body: body, status: "400"},
		"a space before the colon":  {head: auth + "Content-Length : 23\r\n", body: body, status: "400"},
		"length and chunks":         {head: auth + length + "Transfer-Encoding: chunked\r\n", body: "0\r\n\r\nPOST /v1/sandbox/execute HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Type: application/json\r\n" + length + "\r\n" + body, status: "400"},
		"an odd encoding":           {head: auth + "Transfer-Encoding: xchunked\r\n", body: "17\r\n" + body + "\r\n0\r\n\r\n", status: "501"},
		"encodings in a list":       {head: auth + "Transfer-Encoding: chunked, identity\r\n", body: "17\r\n" + body + "\r\n0\r\n\r\n", status: "501"},
		"a NUL in a value":          {head: auth + length + "X-Any: a\x00b\r\n", body: body, status: "400"},
		"a line break in a name":    {head: auth + length + "X-An\ny: a\r\n", body: body, status: "400"},
		"two hosts":                 {head: "Host: y\r\n" + auth + length, body: body, status: "400"},
		"a very long head":          {head: auth + length + "X-Any: " + strings.Repeat("a", 64<<10) + "\r\n", body: body, status: "431"},
		"two keys":                  {head: auth + auth + length, body: body, status: "401"},
		"the key and more":          {head: "Authorization: Bearer " + key + ", Bearer " + key + "\r\n" + length, body: body, status: "401"},
		"the key in a cookie":       {head: "Cookie: Authorization=Bearer " + key + "\r\nX-Api-Key: " + key + "\r\n" + length, body: body, status: "401"},
		"the key in the address":    {line: "POST /v1/sandbox/execute?key=" + key, head: length, body: body, status: "401"},
		"two idempotency keys":      {head: auth + length + "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", body: body, status: "400"},
		"an idempotency key in é":   {head: auth + length + "Idempotency-Key: \xc3\xa9\r\n", body: body, status: "400"},
		"another method":            {line: "GET /v1/sandbox/execute", head: auth + length + "X-HTTP-Method-Override: POST\r\n", body: body, status: "405"},
		"another path":              {line: "POST /healthz/..%2fv1/sandbox/execute", head: auth + length + "X-Original-URL: /v1/sandbox/execute\r\nX-Rewrite-URL: /v1/sandbox/execute\r\n", body: body, status: "404"},
		"a break in the path":       {line: "GET /v1/executions/x%0d%0aX-Evil:%201", head: auth, status: "404"},
		"a break in a query":        {line: "GET /v1/executions?metadata.a%0d%0aX-Evil:%201=%0d%0aX-Evil:%201", head: auth, status: "200"},
		"a proxy's word of itself":  {line: "GET /v1/admin/tenants", head: auth + "X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\nX-Real-Ip: 127.0.0.1\r\n", status: "403"},
		"another's place, absolute": {line: "POST http://169.254.169.254/v1/sandbox/execute", head: auth + length, body: body, status: "200"},
	} {
		if c.line == "" {
			c.line = "POST /v1/sandbox/execute"
		}
		got := raw(t, s, c.line+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"+c.head+"\r\n"+c.body)
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: want %s, got %.300q", name, c.status, got)
		}
		if strings.Contains(got, "\nX-Evil") || strings.Contains(got, forged) {
			t.Errorf("%s: the request wrote into the answer: %.300q", name, got)
		}
		if strings.Contains(got, `"stdout":"ran\n"`) {
			ran++
		}
	}
	var page struct{ Data []record }
	s.Must(t, key, http.MethodGet, "/v1/executions?limit=100", nil).Into(t, http.StatusOK, &page)
	if ran != 4 || len(page.Data) != ran {
		t.Errorf("%d requests ran code, and there are %d executions", ran, len(page.Data))
	}
}

// raw sends bytes on a connection of their own and returns all that comes back.
func raw(t *testing.T, s *atolltest.Server, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, request) // it may be refused before all of it is sent
	got, err := io.ReadAll(conn)
	if err != nil && len(got) == 0 {
		t.Errorf("no answer: %v", err)
	}
	return string(got)
}
