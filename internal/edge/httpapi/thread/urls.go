package thread

import (
	"net/http"
	"net/url"
	"time"

	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// UploadRequest is the body of POST /v1/files/upload_url.
type UploadRequest struct {
	DownloadRequest
	Length *int64  `json:"content_length" required:"true" minimum:"0" doc:"Bytes of the file. A longer one is written, too."`
	Type   *string `json:"content_type,omitzero" maxLength:"256" doc:"Media type of the file; not stored."`
}

// DownloadRequest is the body of POST /v1/files/download_url.
type DownloadRequest struct {
	Source *string `json:"source" required:"true" enum:"thread,volume" doc:"Kind of the object that id names. Files of a volume have no URLs here: executions that mount it reach them."`
	ID     *string `json:"id" required:"true" doc:"A thread_id."`
	Path   *string `json:"path" required:"true" doc:"The file, from the home."`
}

// FileURL reads or writes one file without a key.
type FileURL struct {
	URL       string       `json:"url" doc:"Absolute, with the host that the request was sent to."`
	Method    string       `json:"method" enum:"GET,PUT" doc:"The method of HTTP that the URL is for."`
	Headers   []FileHeader `json:"headers" doc:"To be sent with the request; none so far."`
	ExpiresAt time.Time    `json:"expires_at" doc:"When it stops being valid."`
}

// FileHeader is a header that a request to a FileURL has to have.
type FileHeader struct {
	Name  string `json:"name" doc:"The header's name."`
	Value string `json:"value" doc:"The value."`
}

func (h *Handlers) fileURLs() []httpapi.Operation {
	const read = "Likewise POST /v1/threads/{thread_id}/signed_urls, which takes another lifetime than 15 minutes."
	answers := []httpapi.Answer{httpapi.OK(FileURL{}, "It is valid for 15 minutes, and as long as the key that asked for it.")}
	example := DownloadRequest{Source: new("thread"), ID: new("my-thread"), Path: new("results/report.pdf")}
	return []httpapi.Operation{
		{
			Method: http.MethodPost, Path: "/v1/files/upload_url", ID: "getUploadURL", Tag: "files", Summary: "Make a URL that writes one file without a key",
			Description: read, Scope: signed.FileScope(http.MethodPut),
			Body:    httpapi.JSON(UploadRequest{DownloadRequest: example, Length: new(int64(1024))}),
			Answers: append(answers, httpapi.Refusal(http.StatusRequestEntityTooLarge, "payload_too_large: content_length is over 10 GiB.")),
			Serve:   httpapi.Takes(h.uploadURL),
		},
		{
			Method: http.MethodPost, Path: "/v1/files/download_url", ID: "getDownloadURL", Tag: "files", Summary: "Make a URL that reads one file without a key",
			Description: read, Scope: signed.FileScope(http.MethodGet),
			Body: httpapi.JSON(example), Answers: append(answers, httpapi.Refusal(http.StatusNotFound, "not_found: the thread or file does not exist.")),
			Serve: httpapi.Takes(h.downloadURL),
		},
	}
}

func (h *Handlers) uploadURL(c *httpapi.Call, in *UploadRequest) (out FileURL, err error) {
	if *in.Length > thread.MaxUpload {
		return out, fault.New(fault.TooLarge, "a body must have at most %d bytes", int64(thread.MaxUpload))
	}
	return h.fileURL(c, http.MethodPut, &in.DownloadRequest)
}

// downloadURL refuses at once what there is not: the contract's client takes a URL for a
// promise.
func (h *Handlers) downloadURL(c *httpapi.Call, in *DownloadRequest) (out FileURL, err error) {
	if out, err = h.fileURL(c, http.MethodGet, in); err != nil {
		return out, err
	}
	tree, err := h.Threads.Home(c.Context(), c.Caller.Tenant.ID, *in.ID)
	if err == nil {
		_, err = tree.Stat(*in.Path)
	}
	return out, err
}

func (h *Handlers) fileURL(c *httpapi.Call, method string, in *DownloadRequest) (out FileURL, err error) {
	if *in.Source != "thread" {
		return out, httpapi.Invalid(`source must be "thread": files of a volume are reached by an execution that mounts it, at /data/%s`, *in.ID)
	}
	if err := checkID(*in.ID); err != nil {
		return out, err
	}
	made, err := h.signFile(c.Caller, method, *in.ID, *in.Path, signed.FileLife)
	if err != nil {
		return out, err
	}
	at, err := url.Parse(made.URL)
	if err != nil {
		return out, err
	}
	at.Scheme, at.Host = "http", c.R.Host
	// What a caller says of itself leads only that caller astray.
	if c.R.TLS != nil || c.R.Header.Get("X-Forwarded-Proto") == "https" {
		at.Scheme = "https"
	}
	return FileURL{URL: at.String(), Method: made.Method, Headers: []FileHeader{}, ExpiresAt: made.ExpiresAt}, nil
}
