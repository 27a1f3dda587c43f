package thread_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestFileURLs uses the URLs of the contract's client: absolute, without a key, and each
// for one method on one file.
func TestFileURLs(t *testing.T) {
	s := newThreadServer(t)
	ask := func(path, body string, header ...string) string {
		t.Helper()
		var got thread.FileURL
		if err := json.Unmarshal([]byte(httpapitest.Answers(t, s, 200, `"headers":[]`, "POST", path, body, header...)), &got); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(got.URL)
		if err != nil || u.Host != "example.com" || u.Scheme != "http" && len(header) == 0 || u.Scheme != "https" && len(header) > 0 || got.ExpiresAt.IsZero() {
			t.Errorf("%s: %+v %v", path, got, err)
		}
		return u.RequestURI()
	}
	const file = `"source":"thread","id":"t-1","path":"dir/a b.txt"`
	const keyless = "" // a signed URL is used without a key
	httpapitest.Answers(t, s, 404, "thread not found", "POST", "/v1/files/download_url", "{"+file+"}")
	put := ask("/v1/files/upload_url", "{"+file+`,"content_length":5,"content_type":"text/plain"}`, "X-Forwarded-Proto", "https")
	httpapitest.Answers(t, s, 200, `"size":5`, "PUT", put, "hello", "Authorization", keyless)
	get := ask("/v1/files/download_url", "{"+file+"}")
	httpapitest.Answers(t, s, 200, "hello", "GET", get, "", "Authorization", keyless)
	httpapitest.Answers(t, s, 403, "not valid", "PUT", get, "other", "Authorization", keyless)
	httpapitest.Answers(t, s, 404, "", "POST", "/v1/files/download_url", `{"source":"thread","id":"t-1","path":"none"}`)
	httpapitest.Answers(t, s, 400, "/data/books", "POST", "/v1/files/download_url", `{"source":"volume","id":"books","path":"a"}`)
	httpapitest.Answers(t, s, 413, "", "POST", "/v1/files/upload_url", "{"+file+`,"content_length":99999999999}`)
	httpapitest.Answers(t, s, 404, "thread not found", "POST", "/v1/files/download_url", "{"+file+"}", "Authorization", "Bearer "+gatewaytest.Token("other"))
}
