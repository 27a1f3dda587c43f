// Package thread serves threads: their records, their files, and the URLs that read or
// write one file without a key.
package thread

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Folders lists folders of connections.
type Folders interface {
	ListFolder(ctx context.Context, tenant tenant.ID, m storage.Mount) ([]storage.File, error)
}

// Handlers serve threads. All of it is required.
type Handlers struct {
	Threads *thread.Catalog
	Folders Folders
	Signed  *signed.Files
}

// idPattern is what execution.CheckThread checks.
const idPattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"

// Operations are those of /v1/threads, and POST /v1/files/list.
func (h *Handlers) Operations() []httpapi.Operation {
	const (
		get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
		read, write                = tenant.ScopeRead, tenant.ScopeExecute

		one     = "/v1/threads/{thread_id}"
		archive = one + "/archive"
		files   = one + "/files"
		file    = files + "/{path...}"
	)
	id := httpapi.Param{Name: "thread_id", In: httpapi.InPath, Pattern: idPattern, Doc: "The id that executions name it by."}
	path := httpapi.Param{Name: "path", In: httpapi.InPath, Doc: "The file, from the home; its slashes stand for themselves."}
	signature := httpapi.Param{Name: signatureParam, Doc: "Of a signed URL, in place of a key."}
	onThread, onFile, signed := []httpapi.Param{id}, []httpapi.Param{id, path}, []httpapi.Param{id, path, signature}

	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the thread or file does not exist, or belongs to another tenant.")
	busy := httpapi.Refusal(http.StatusConflict, "conflict: an execution, or another edit, is using the thread.")
	full := httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan; the message names it.")
	gone := httpapi.NoContent("It is deleted.")

	ops := []httpapi.Operation{
		{
			Method: get, Path: "/v1/threads", ID: "listThreads", Summary: "List threads", Description: "Each with its size and times. `prefix` lists those whose ids begin so.", Scope: read,
			Params:  append([]httpapi.Param{{Name: "prefix", Doc: "Threads whose id begins so."}}, httpapi.PageParams(20, 100)...),
			Answers: []httpapi.Answer{httpapi.OK(ThreadPage{}, "A page, by id.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: get, Path: one, ID: "getThread", Summary: "Get a thread", Description: "Its size, when it was saved last, and when it is deleted.", Scope: read, Params: onThread,
			Answers: []httpapi.Answer{httpapi.OK(Thread{}, "Its record."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: patch, Path: one, ID: "changeThread", Summary: "Set when a thread is deleted", Description: "Without `expires_at` it is kept for the server's `keep_threads` after it was saved last, or for ever.", Scope: write, Params: onThread,
			Body:    httpapi.JSON(ThreadChange{ExpiresAt: exampleTime}),
			Answers: []httpapi.Answer{httpapi.OK(Thread{}, "Its record."), unknown}, Serve: httpapi.Takes(h.change),
		},
		{
			Method: del, Path: one, ID: "deleteThread", Summary: "Delete a thread", Description: "All files are deleted immediately; the blob store frees their data within days.", Scope: write, Params: onThread,
			Answers: []httpapi.Answer{gone, unknown, busy}, Serve: httpapi.Does(h.delete),
		},
		{
			Method: get, Path: archive, ID: "exportThread", Summary: "Get a thread as a tar archive", Description: "Files, folders, links and modes as they were saved last, streamed.", Scope: read, Params: onThread,
			Answers: []httpapi.Answer{httpapi.Download(httpapi.Tar, "A PAX archive of the home."), unknown}, Serve: httpapi.Writes(h.export),
		},
		{
			Method: put, Path: archive, ID: "importThread", Summary: "Replace the files of a thread by a tar archive", Description: "Deletes the previous files. Atoll reads the whole archive first: if it is damaged or exceeds the plan's `max_thread_size`, nothing changes.", Scope: write, Params: onThread,
			Body:    &httpapi.Body{Media: httpapi.Tar},
			Answers: []httpapi.Answer{httpapi.OK(Thread{}, "Its record. A thread that was not there is created."), busy, full}, Serve: httpapi.Returns(h.importTar),
		},
		{
			Method: get, Path: files, ID: "listThreadFiles", Summary: "List a folder of a thread", Description: "One folder, as it was saved last, without those below it.", Scope: read,
			Params:  []httpapi.Param{id, {Name: "path", Doc: "The folder, from the home; the home if not given."}},
			Answers: []httpapi.Answer{httpapi.OK(FilesListResponse{}, "Entries of the folder, by name."), unknown}, Serve: httpapi.Returns(h.listFiles),
		},
		{
			Method: get, Path: file, ID: "getThreadFile", Summary: "Read a file of a thread", Description: "As it was saved last. A signed URL needs no key.", Access: httpapi.Delegated, Scope: read, Params: signed,
			Answers: []httpapi.Answer{
				httpapi.Download(httpapi.OctetStream, "Its bytes."),
				httpapi.Part("With Range: a part of them."), unknown,
				httpapi.Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable: Range is beyond the end of the file."),
			},
			Serve: httpapi.Writes(h.getFile),
		},
		{
			Method: put, Path: file, ID: "putThreadFile", Summary: "Write a file of a thread", Description: "The body is the file's content, streamed. A file that is there is replaced whole, or not at all. A signed URL needs no key.", Access: httpapi.Delegated, Scope: write, Params: signed,
			Body: &httpapi.Body{Media: httpapi.OctetStream},
			Answers: []httpapi.Answer{
				httpapi.OK(FileEntry{}, "The file. Thread and folders that were not there are created."), busy, full,
				httpapi.Refusal(http.StatusRequestEntityTooLarge, "payload_too_large: the file is over 10 GiB."),
			},
			Serve: httpapi.Returns(h.putFile),
		},
		{
			Method: del, Path: file, ID: "deleteThreadFile", Summary: "Delete a file or folder of a thread", Description: "A folder goes with all that is in it.", Scope: write, Params: onFile,
			Answers: []httpapi.Answer{gone, unknown, busy}, Serve: httpapi.Does(h.deleteFile),
		},
		{
			Method: post, Path: one + "/signed_urls", ID: "signThreadFile", Summary: "Make a URL that reads or writes one file without a key", Description: "The URL is for one file and one method. It holds for `expires_in` seconds, at most a day, and no longer than the key that has asked for it.", Scope: read, Params: onThread,
			Body:    httpapi.JSON(SignRequest{Method: http.MethodGet, Path: new("results/report.pdf"), ExpiresIn: new(wire.Seconds(900))}),
			Answers: []httpapi.Answer{httpapi.OK(SignedURL{}, "It is valid as long as the key that asked for it.")}, Serve: httpapi.Takes(h.sign),
		},
	}
	for i := range ops {
		ops[i].Tag = "threads"
	}
	return append(append(ops, h.fileURLs()...), httpapi.Operation{
		Method: post, Path: "/v1/files/list", ID: "listFiles", Tag: "files", Summary: "List a folder of a thread or a mounted connection", Description: "One call for both: `source` says whether `id` is a thread or the slug of a connection that the key mounts. Folders are not descended into.", Scope: read,
		Body: httpapi.JSON(FilesListRequest{Source: new("thread"), ID: new("my-thread"), Path: new("results")}),
		Answers: []httpapi.Answer{
			httpapi.OK(FilesListResponse{}, "Entries of the folder, by name; at most 10,000."),
			httpapi.Refusal(http.StatusNotFound, "not_found: the thread does not exist, or this key does not mount the connection."),
			httpapi.Refusal(http.StatusServiceUnavailable, "service_unavailable: the storage cannot be reached."),
		},
		Serve: httpapi.Takes(h.listFolder),
	})
}
