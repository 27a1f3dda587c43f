package thread_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	threads "github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// noFolders is where no connection is mounted.
type noFolders struct{ thread.Folders }

// newThreadServer is a server with threads, and a second tenant "other" that
// may have one thread of 100 bytes.
func newThreadServer(t *testing.T, change ...func(*httpapitest.Setup)) *httpapitest.Server {
	t.Helper()
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		w := c.World
		owners, err := idmap.Find()
		if err != nil {
			t.Fatal(err)
		}
		homes, err := home.NewStore(home.Config{Blobs: w.Blobs, Key: bytes.Repeat([]byte{7}, 32), Owners: owners})
		if err != nil {
			t.Fatal(err)
		}
		c.Threads = &thread.Handlers{
			Threads: threads.New(threads.Config{Records: w.DB.Threads(), Homes: home.States{Store: homes}, Log: c.Log}),
			Signed:  &signed.Files{Signer: storetest.Box(t), Keys: w}, Folders: noFolders{},
		}
		for _, f := range change {
			f(c)
		}
	})
	tenants := s.DB.Tenants()
	if err := tenants.PutPlan(t.Context(), tenant.Plan{Name: "small", MaxOutput: 1 << 20, MaxThreads: 1, MaxThreadSize: 100}); err != nil {
		t.Fatal(err)
	}
	s.Principal(t, "other", "small")
	return s
}

func TestThreadFiles(t *testing.T) {
	s := newThreadServer(t)
	other := []string{"Authorization", "Bearer " + gatewaytest.Token("other")}
	const file = "/v1/threads/t-1/files/dir/a%20b.txt"

	httpapitest.Answers(t, s, 404, "thread not found", "GET", "/v1/threads/t-1", "")
	httpapitest.Answers(t, s, 200, `"size":5`, "PUT", file, "hello")
	httpapitest.Answers(t, s, 200, `"thread_id":"t-1","bytes":5,"files":2`, "GET", "/v1/threads/t-1", "")
	httpapitest.Answers(t, s, 200, "hello", "GET", file, "")
	httpapitest.Answers(t, s, 206, "ell", "GET", file, "", "Range", "bytes=1-3")
	httpapitest.Answers(t, s, 200, "hello", "GET", file, "", "Range", "bytes=0-0,2-3") // several ranges: all of it
	httpapitest.Answers(t, s, 416, "range_not_satisfiable", "GET", file, "", "Range", "bytes=9-")
	if w := httpapitest.Ask(s, "HEAD", file, ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "5" {
		t.Errorf("HEAD: %d %q %v", w.Code, w.Body, w.Header())
	}
	httpapitest.Answers(t, s, 200, `"name":"dir","path":"dir","size":0`, "GET", "/v1/threads/t-1/files", "")
	httpapitest.Answers(t, s, 200, `"name":"a b.txt","path":"dir/a b.txt","size":5`, "GET", "/v1/threads/t-1/files?path=/dir/", "")
	httpapitest.Answers(t, s, 200, `{"files":[{"name":"a b.txt","path":"dir/a b.txt","size":5`, "POST", "/v1/files/list", `{"source":"thread","id":"t-1","path":"dir"}`)
	httpapitest.Answers(t, s, 404, "thread not found", "POST", "/v1/files/list", `{"source":"thread","id":"t-2"}`)
	httpapitest.Answers(t, s, 404, "thread not found", "POST", "/v1/files/list", `{"source":"thread","id":"../t"}`)
	httpapitest.Answers(t, s, 400, "is a folder", "GET", "/v1/threads/t-1/files/dir", "")
	httpapitest.Answers(t, s, 404, "no file or folder", "GET", "/v1/threads/t-1/files/nope", "")
	httpapitest.Answers(t, s, 400, "none of them . or ..", "PUT", "/v1/threads/t-1/files/x%2F..%2F..%2Fetc", "x")
	httpapitest.Answers(t, s, 400, "without NUL", "PUT", "/v1/threads/t-1/files/a%00b", "x")
	httpapitest.Answers(t, s, 404, "thread not found", "PUT", "/v1/threads/-bad/files/a", "x")

	httpapitest.Answers(t, s, 404, "thread not found", "GET", file, "", other...)
	httpapitest.Answers(t, s, 404, "thread not found", "DELETE", file, "", other...)
	httpapitest.Answers(t, s, 404, "thread not found", "DELETE", "/v1/threads/t-1", "", other...)
	httpapitest.Answers(t, s, 429, "", "PUT", "/v1/threads/mine/files/big", strings.Repeat("x", 101), other...)
	httpapitest.Answers(t, s, 404, "thread not found", "GET", "/v1/threads/mine", "", other...)
	httpapitest.Answers(t, s, 200, "", "PUT", "/v1/threads/mine/files/small", strings.Repeat("x", 100), other...)
	httpapitest.Answers(t, s, 429, "thread limit reached (1)", "PUT", "/v1/threads/second/files/small", "x", other...)

	httpapitest.Answers(t, s, 204, "", "DELETE", "/v1/threads/t-1/files/dir", "")
	httpapitest.Answers(t, s, 200, `{"files":[]}`, "GET", "/v1/threads/t-1/files", "")
	httpapitest.Answers(t, s, 204, "", "DELETE", "/v1/threads/t-1", "")
	httpapitest.Answers(t, s, 404, "thread not found", "DELETE", "/v1/threads/t-1", "")
}

func TestThreadRecords(t *testing.T) {
	s := newThreadServer(t)
	for _, id := range []string{"b", "a1", "a2", "a3"} {
		httpapitest.Answers(t, s, 200, "", "PUT", "/v1/threads/"+id+"/files/f", id)
	}
	var page thread.ThreadPage
	if err := json.Unmarshal([]byte(httpapitest.Answers(t, s, 200, "a1", "GET", "/v1/threads?prefix=a&limit=2", "")), &page); err != nil || len(page.Data) != 2 || page.NextPage == nil {
		t.Fatalf("%+v, %v", page, err)
	}
	httpapitest.Answers(t, s, 200, `"next_page":null`, "GET", "/v1/threads?prefix=a&limit=2&page="+*page.NextPage, "")
	httpapitest.Answers(t, s, 400, "prefix", "GET", "/v1/threads?prefix=/", "")
	httpapitest.Answers(t, s, 400, "limit", "GET", "/v1/threads?limit=0", "")
	httpapitest.Answers(t, s, 400, "unknown query parameter", "GET", "/v1/threads?x=1", "")

	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	json := []string{"Content-Type", "application/json"}
	httpapitest.Answers(t, s, 200, `"expires_at":"`+later, "PATCH", "/v1/threads/b", `{"expires_at":"`+later+`"}`, json...)
	httpapitest.Answers(t, s, 200, `"expires_at":null`, "PATCH", "/v1/threads/b", `{"expires_at":null}`, json...)
	httpapitest.Answers(t, s, 400, "in the future", "PATCH", "/v1/threads/b", `{"expires_at":"2001-01-01T00:00:00Z"}`, json...)
	httpapitest.Answers(t, s, 400, "nope", "PATCH", "/v1/threads/b", `{"nope":1}`, json...)
	httpapitest.Answers(t, s, 405, "method_not_allowed", "POST", "/v1/threads/b", `{}`)

	// While an execution has a thread, no other call can change it.
	begun := make(chan struct{})
	release := make(chan struct{})
	s.Executor.Program("hold", func(r *gatewaytest.Run) int { close(begun); <-release; return 0 })
	done := make(chan *execution.Execution)
	req := gatewaytest.Request("hold")
	req.Thread = "b"
	go func() {
		e, _ := s.Gateway.Execute(t.Context(), s.Caller, req, gateway.Call{Source: execution.SourceAPI, Delivery: execution.Inline})
		done <- e
	}()
	<-begun
	httpapitest.Answers(t, s, 409, "is in use", "PUT", "/v1/threads/b/files/f", "x")
	httpapitest.Answers(t, s, 409, "is in use", "DELETE", "/v1/threads/b", "")
	httpapitest.Answers(t, s, 409, "conflict", "POST", "/v1/sandbox/execute", `{"code":"x","thread_id":"b"}`)
	httpapitest.Answers(t, s, 200, "b", "GET", "/v1/threads/b/files/f", "")
	close(release)
	if e := <-done; e == nil || e.Thread != "b" {
		t.Errorf("the execution's record: %+v", e)
	}
	httpapitest.Answers(t, s, 200, `"thread_id":"b"`, "GET", "/v1/executions?thread_id=b", "")
}

func TestThreadArchive(t *testing.T) {
	s := newThreadServer(t)
	httpapitest.Answers(t, s, 200, "", "PUT", "/v1/threads/a/files/x/y", "content")
	archive := httpapitest.Answers(t, s, 200, "", "GET", "/v1/threads/a/archive", "")
	found := false
	for in := tar.NewReader(strings.NewReader(archive)); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimPrefix(h.Name, "./") == "x/y" {
			b, err := io.ReadAll(in)
			found = err == nil && string(b) == "content"
		}
	}
	if !found {
		t.Errorf("x/y is not in the archive of %d bytes", len(archive))
	}
	httpapitest.Answers(t, s, 200, `"bytes":7`, "PUT", "/v1/threads/b/archive", archive)
	httpapitest.Answers(t, s, 200, "content", "GET", "/v1/threads/b/files/x/y", "")
	httpapitest.Answers(t, s, 400, "archive", "PUT", "/v1/threads/b/archive", "no archive at all, but long enough to have been one"+strings.Repeat("x", 1024))
	httpapitest.Answers(t, s, 200, "content", "GET", "/v1/threads/b/files/x/y", "")
}

func TestSignedURLs(t *testing.T) {
	s := newThreadServer(t)
	httpapitest.Answers(t, s, 200, "", "PUT", "/v1/threads/a/files/x%20y", "content")
	sign := func(body string) thread.SignedURL {
		t.Helper()
		var u thread.SignedURL
		if err := json.Unmarshal([]byte(httpapitest.Answers(t, s, 200, "url", "POST", "/v1/threads/a/signed_urls", body)), &u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	anonymous := []string{"Authorization", ""}
	get := sign(`{"path":"x y"}`)
	httpapitest.Answers(t, s, 200, "content", "GET", get.URL, "", anonymous...)
	httpapitest.Answers(t, s, 403, "not valid", "PUT", get.URL, "other", anonymous...)
	httpapitest.Answers(t, s, 403, "not valid", "GET", strings.Replace(get.URL, "x%20y", "other", 1), "", anonymous...)
	httpapitest.Answers(t, s, 403, "not valid", "GET", strings.Replace(get.URL, "/a/", "/b/", 1), "", anonymous...)
	httpapitest.Answers(t, s, 403, "not valid", "GET", get.URL[:len(get.URL)-2]+"AA", "", anonymous...)
	httpapitest.Answers(t, s, 401, "", "GET", strings.Split(get.URL, "?")[0], "", anonymous...)
	put := sign(`{"path":"/new","method":"PUT","expires_in":60}`)
	httpapitest.Answers(t, s, 200, `"size":3`, "PUT", put.URL, "new", anonymous...)
	httpapitest.Answers(t, s, 200, "new", "GET", "/v1/threads/a/files/new", "")
	for body, says := range map[string]string{
		`{}`: "path is required", `{"path":"x","method":"DELETE"}`: "method must be", `{"path":"x","expires_in":0}`: "expires_in", `{"path":"x","expires_in":86401}`: "expires_in",
	} {
		httpapitest.Answers(t, s, 400, says, "POST", "/v1/threads/a/signed_urls", body)
	}
	if err := s.DB.Tenants().RevokeKey(t.Context(), s.Caller.Tenant.ID, s.Caller.Key.ID); err != nil {
		t.Fatal(err)
	}
	httpapitest.Answers(t, s, 403, "not valid", "GET", get.URL, "", anonymous...)
}

// TestUploadsWhileTheDiskIsFull: what is written to the disk is refused while that is
// short of space, at the begin and on the way, and nothing of it is there.
func TestUploadsWhileTheDiskIsFull(t *testing.T) {
	var asked []int64
	short := 0 // looks until the disk is full
	s := newThreadServer(t, func(c *httpapitest.Setup) {
		c.Room = func(bytes int64) error {
			if asked = append(asked, bytes); len(asked) > short {
				return fault.New(fault.Unavailable, "the server is low on disk space; retry later")
			}
			return nil
		}
	})
	httpapitest.Answers(t, s, 503, "low on disk space", "PUT", "/v1/threads/t-1/files/a.txt", "hello")
	if len(asked) != 1 || asked[0] != 5 {
		t.Errorf("asked for %d bytes", asked)
	}
	httpapitest.Answers(t, s, 503, "low on disk space", "PUT", "/v1/threads/t-1/archive", "no tar")
	asked, short = nil, 1
	httpapitest.Answers(t, s, 503, "low on disk space", "PUT", "/v1/threads/t-1/files/a.txt", strings.Repeat("x", 20<<20))
	asked, short = nil, 9
	httpapitest.Answers(t, s, 200, `"size":5`, "PUT", "/v1/threads/t-2/files/a.txt", "hello")
	httpapitest.Answers(t, s, 404, "", "GET", "/v1/threads/t-1/files/a.txt", "")
}
