package transport

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestReadError(t *testing.T) {
	for body, want := range map[string]Said{
		`{"error":{"message":"m","type":"t","code":"c"}}`:                    {"m", "t", "c"},
		`{"error":{"message":"m","code":429,"status":"RESOURCE_EXHAUSTED"}}`: {"m", "RESOURCE_EXHAUSTED", "429"},
		`[{"error":{"message":"m"}}]`:                                        {Message: "m"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`: {"m", "overloaded_error", ""},
		`{"error":"m"}`:   {Message: "m"},
		`{"message":"m"}`: {Message: "m"},
		`{"detail":"m"}`:  {Message: "m"},
		`{"detail":[{"loc":["body"],"msg":"m"}]}`:                           {Message: `[{"loc":["body"],"msg":"m"}]`},
		`{"type":"error","code":"server_error","message":"m","param":null}`: {"m", "error", "server_error"},
		`{"error":null}`:          {},
		`no JSON`:                 {},
		`[]`:                      {},
		``:                        {},
		`{"error":{"message":`:    {},
		`{"error":{"code":null}}`: {},
	} {
		if got := ReadError([]byte(body)); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

func TestScrub(t *testing.T) {
	const key = "sk+very/secret="
	for _, form := range []string{key, "sk%2Bvery%2Fsecret%3D", base64.StdEncoding.EncodeToString([]byte(key))} {
		if got := Scrub("your key "+form+" is wrong", key); got != "your key [key] is wrong" {
			t.Errorf("%q", got)
		}
	}
	if got := Scrub("a\nb\x00c\xff", ""); got != "a b c\uFFFD" {
		t.Errorf("%q", got)
	}
	if got := Scrub(strings.Repeat("ü", 5000), "k"); utf8.RuneCountInString(got) != maxMessage+1 {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "NaN": 0, "Inf": 0, "soon": 0, "99999999": maxRetryAfter, "": 0} {
		if got := retryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("%q: %s", value, got)
		}
		if got := retryAfter(http.Header{"Retry-After-Ms": {value}}); got != min(want/1000, maxRetryAfter) && value != "99999999" {
			t.Errorf("%q ms: %s", value, got)
		}
	}
	at := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	if got := retryAfter(http.Header{"Retry-After": {at}}); got < 50*time.Second || got > time.Minute {
		t.Errorf("%s: %s", at, got)
	}
}

// FuzzReadError reads anything as an error: its texts are fit to be passed on.
func FuzzReadError(f *testing.F) {
	for _, body := range []string{`{"error":{"message":"m","type":"t","code":"c"}}`, `[{"error":"x"}]`, `{"detail":[1]}`, "", "[", `{"error":{"message":{"a":1}}}`} {
		f.Add([]byte(body), "m")
	}
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		said := ReadError(body)
		got := Scrub(said.Message, key)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxMessage+1 || strings.ContainsAny(got, "\n\r\x00") {
			t.Fatalf("%q", got)
		}
		if len(key) > len(covered) && strings.Contains(got, key) {
			t.Fatalf("the key %q is in %q", key, got)
		}
		_ = failureOf(0, said)
		_ = failureOf(429, said)
	})
}
