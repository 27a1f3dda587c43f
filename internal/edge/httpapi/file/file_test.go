package file_test

import (
	"bytes"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/upload/uploadtest"
	fileapi "github.com/atoll-run/atoll/internal/edge/httpapi/file"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

const maxSize = 1 << 20

func open(t *testing.T) (*httpapitest.Server, *store.DB) {
	t.Helper()
	db := storetest.SQLite(t)
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Files = &fileapi.Handlers{Files: &upload.Service{
			Store: db.Files(), Contents: upload.Contents{Blobs: c.World.Blobs, Seal: storetest.Box(t)}, Limits: upload.Limits{Files: 5, Size: maxSize}, Log: slog.New(slog.DiscardHandler),
		}}
	})
	storetest.Tenant(t, db, s.Caller.Tenant.ID)
	return s, db
}

// send uploads a form of fields and files: each is a name, a file's name or "" for a field, and
// a value.
func send(t *testing.T, s http.Handler, parts ...string) *httptest.ResponseRecorder {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for i := 0; i < len(parts); i += 3 {
		create := func() (io.Writer, error) { return w.CreateFormField(parts[i]) }
		if parts[i+1] != "" {
			create = func() (io.Writer, error) { return w.CreateFormFile(parts[i], parts[i+1]) }
		}
		to, err := create()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = to.Write([]byte(parts[i+2]))
	}
	_ = w.Close()
	return httpapitest.Ask(s, http.MethodPost, "/v1/files", out.String(), "Content-Type", w.FormDataContentType())
}

type page struct {
	Data     []fileapi.UploadedFile
	NextPage *string `json:"next_page"`
}

func TestFiles(t *testing.T) {
	s, db := open(t)
	data := strings.Repeat("0123456789", 60_000)
	made := httpapitest.Decode[fileapi.UploadedFile](t, send(t, s, "file", "dir/data.csv", data), http.StatusOK)
	if made.FileName != "data.csv" || made.Size != int64(len(data)) || made.MediaType != "text/csv; charset=utf-8" || made.ExpiresAt != nil || made.Scope != nil || !made.Downloadable {
		t.Errorf("%+v", made)
	}
	at := "/v1/files/" + made.ID
	if got := httpapitest.Decode[fileapi.UploadedFile](t, httpapitest.Ask(s, "GET", at, ""), http.StatusOK); got != made {
		t.Errorf("%+v, want %+v", got, made)
	}
	whole := httpapitest.Ask(s, "GET", at+"/content", "")
	if whole.Code != http.StatusOK || whole.Body.String() != data || !strings.Contains(whole.Header().Get("Content-Disposition"), "data.csv") {
		t.Errorf("%d, %d bytes, %v", whole.Code, whole.Body.Len(), whole.Header())
	}
	part := httpapitest.Ask(s, "GET", at+"/content", "", "Range", "bytes=300005-300009")
	if part.Code != http.StatusPartialContent || part.Body.String() != "56789" {
		t.Errorf("%d %q", part.Code, part.Body)
	}
	before := httpapitest.Decode[fileapi.UploadedFile](t, send(t, s, "expires_in_seconds", "", "3600", "file", "a", "x"), http.StatusOK)
	after := httpapitest.Decode[fileapi.UploadedFile](t, send(t, s, "file", "b", "y", "expires_in_seconds", "", "7776000"), http.StatusOK)
	if before.ExpiresAt == nil || before.ExpiresAt.Sub(before.CreatedAt) != time.Hour || after.ExpiresAt == nil {
		t.Errorf("%+v, %+v", before, after)
	}
	first := httpapitest.Decode[page](t, httpapitest.Ask(s, "GET", "/v1/files?limit=2", ""), http.StatusOK)
	if len(first.Data) != 2 || first.Data[0].ID != after.ID || first.NextPage == nil {
		t.Fatalf("%+v", first)
	}
	if second := httpapitest.Decode[page](t, httpapitest.Ask(s, "GET", "/v1/files?limit=2&page="+*first.NextPage, ""), http.StatusOK); len(second.Data) != 1 || second.Data[0].ID != made.ID || second.NextPage != nil {
		t.Errorf("%+v", second)
	}
	if some := httpapitest.Decode[page](t, httpapitest.Ask(s, "GET", "/v1/files?ids[]="+made.ID+"&ids[]=file_x&ids[]="+made.ID, ""), http.StatusOK); len(some.Data) != 1 || some.Data[0].ID != made.ID {
		t.Errorf("%+v", some)
	}
	if gone := httpapitest.Decode[fileapi.DeletedFile](t, httpapitest.Ask(s, "DELETE", at, ""), http.StatusOK); gone.Type != "file_deleted" || gone.ID != made.ID {
		t.Errorf("%+v", gone)
	}
	for _, op := range []string{"GET " + at, "GET " + at + "/content", "DELETE " + at, "GET /v1/files/upload_url", "GET /v1/files/" + strings.Repeat("x", 300)} {
		verb, path, _ := strings.Cut(op, " ")
		httpapitest.Refused(t, httpapitest.Ask(s, verb, path, ""), http.StatusNotFound, "not_found", "file not found")
	}
	events, err := db.Tenants().PolicyEvents(t.Context(), s.Caller.Tenant.ID)
	if err != nil || len(events) != 4 || events[0].Field != "file/"+made.ID || events[3].New != "deleted" {
		t.Errorf("the trail of policy is %+v, %v", events, err)
	}
}

func TestRefusedFiles(t *testing.T) {
	s, db := open(t)
	theirs := uploadtest.New("ten_other", "a", 1)
	if err := db.Files().Begin(t.Context(), theirs, upload.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Files().Finish(t.Context(), theirs, upload.Limits{}, 0); err != nil {
		t.Fatal(err)
	}
	at := "/v1/files/" + string(theirs.ID)
	for _, op := range []string{"GET " + at, "GET " + at + "/content", "DELETE " + at} {
		verb, path, _ := strings.Cut(op, " ")
		httpapitest.Refused(t, httpapitest.Ask(s, verb, path, ""), http.StatusNotFound, "not_found", "file not found")
	}
	if some := httpapitest.Decode[page](t, httpapitest.Ask(s, "GET", "/v1/files?ids="+string(theirs.ID), ""), http.StatusOK); len(some.Data) != 0 {
		t.Errorf("%+v", some)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/files?scope_id=sess_x", ""), http.StatusNotFound, "not_found", "session")
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/files?page=x", ""), http.StatusBadRequest, "validation_error", "page")
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/files?ids=x&scope_id=y", ""), http.StatusBadRequest, "validation_error", "ids")
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/files", `{}`), http.StatusUnsupportedMediaType, "unsupported_media_type", "multipart/form-data")
	for why, w := range map[string]*httptest.ResponseRecorder{
		"must have the field file": send(t, s),
		"other":                    send(t, s, "other", "", "x", "file", "a", "x"),
		"once":                     send(t, s, "file", "a", "x", "file", "b", "x"),
		"each once":                send(t, s, "expires_in_seconds", "", "3600", "expires_in_seconds", "", "3600"),
		"3600 to 7776000":          send(t, s, "file", "a", "x", "expires_in_seconds", "", "3599"),
		"a whole number":           send(t, s, "expires_in_seconds", "", "soon", "file", "a", "x"),
		"255 bytes":                send(t, s, "file", strings.Repeat("x", 256), "x"),
	} {
		httpapitest.Refused(t, w, http.StatusBadRequest, "validation_error", why)
	}
	half := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhalf"
	httpapitest.Refused(t, httpapitest.Ask(s, http.MethodPost, "/v1/files", half, "Content-Type", "multipart/form-data; boundary=x"), http.StatusBadRequest, "validation_error", "multipart/form-data")
	httpapitest.Refused(t, send(t, s, "file", "a", strings.Repeat("x", maxSize+1)), http.StatusRequestEntityTooLarge, "payload_too_large", "at most 1048576 bytes")
	httpapitest.Refused(t, send(t, s, "file", "a", strings.Repeat("x", 2*maxSize)), http.StatusRequestEntityTooLarge, "payload_too_large", "at most 1048576 bytes")
	if all := httpapitest.Decode[page](t, httpapitest.Ask(s, "GET", "/v1/files", ""), http.StatusOK); len(all.Data) != 0 {
		t.Errorf("refused uploads have left %+v", all)
	}
	for range 5 {
		httpapitest.Decode[fileapi.UploadedFile](t, send(t, s, "file", "a", "x"), http.StatusOK)
	}
	httpapitest.Refused(t, send(t, s, "file", "a", "x"), http.StatusTooManyRequests, "rate_limited", "5 files")
}
