// Package openai serves /v1/containers: the named sandboxes of code_interpreter, and
// their files, as OpenAI's clients expect them.
package openai

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/openaiwire"
)

// Handlers serve containers.
type Handlers struct {
	Sandboxes *sandboxes.Service
}

const (
	containersPath = "/v1/containers"
	containerPath  = containersPath + "/{container_id}"
	filesPath      = containerPath + "/files"
	filePath       = filesPath + "/{file_id}"
)

// Operations are those of /v1/containers.
func (h *Handlers) Operations() []httpapi.Operation {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	id := httpapi.Param{Name: "container_id", In: httpapi.InPath, Pattern: container.Pattern, Doc: "The id of the container."}
	fileID := httpapi.Param{Name: "file_id", In: httpapi.InPath, Pattern: "^cfile_[0-9a-f]{8}[A-Za-z0-9_-]+$", Doc: "The id of the file."}
	page := []httpapi.Param{
		{Name: "limit", Type: httpapi.Int, Min: 1, Max: 100, Default: 20, Doc: "Most entries of a page."},
		{Name: "order", Enum: []string{"asc", "desc"}, Doc: "By time; desc, newest first, if omitted."},
		{Name: "after", Doc: "The id of the last entry that the client has."},
	}
	one := []httpapi.Answer{httpapi.OK(Container{}, "The container.")}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the container or file does not exist, has expired, or belongs to another tenant.")
	limited := httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan.")
	lost := httpapi.Refusal(http.StatusConflict, "conflict: the container is lost, or something of another kind stands at the file's path.")
	unsupported := httpapi.Refusal(http.StatusUnsupportedMediaType, "unsupported_media_type: the body is not multipart/form-data.")
	ops := []httpapi.Operation{
		{
			Method: post, Path: containersPath, ID: "createContainer", Summary: "Create a container", Audit: "sandbox_create",
			Description: "A container is a named sandbox of the session `" + container.Session + "`, which is destroyed when it was not used for a time.",
			Body:        httpapi.JSON(NewContainer{Name: new("analysis"), ExpiresAfter: &ExpiresAfter{Anchor: new(anchor), Minutes: new(int64(20))}}),
			Answers:     append(one, limited), Serve: httpapi.WritesFrom(h.create),
		},
		{
			Method: get, Path: containersPath, ID: "listContainers", Summary: "List containers", Description: "Containers are the named sandboxes of `code_interpreter`: made here, or by a response with an auto container.", Params: append(page, httpapi.Param{Name: "name", Doc: "Only those of a name."}),
			Answers: []httpapi.Answer{httpapi.OK(ContainerList{}, "A page of those of the key's environment.")}, Serve: httpapi.Returns(h.list),
		},
		{Method: get, Path: containerPath, ID: "getContainer", Summary: "Get a container", Description: "Reading it does not count as a use: `expires_after` runs on.", Params: []httpapi.Param{id}, Answers: append(one, unknown), Serve: httpapi.Returns(h.get)},
		{
			Method: del, Path: containerPath, ID: "deleteContainer", Summary: "Delete a container", Description: "Atoll stops its programs and deletes its files. The container remains visible as `expired` for a day.", Audit: "sandbox_destroy", Params: []httpapi.Param{id},
			Answers: []httpapi.Answer{httpapi.OK(DeletedContainer{}, "It is gone, with its files."), unknown}, Serve: httpapi.Returns(h.delete),
		},
		{
			Method: post, Path: filesPath, ID: "createContainerFile", Summary: "Upload a file to a container", Audit: "file_write", Params: []httpapi.Param{id},
			Description: "A form with the field `file`. The file is in `" + container.Dir + "` then, under the name that the form gives it; one of that name is replaced.",
			Body:        &httpapi.Body{Media: "multipart/form-data"},
			Answers:     []httpapi.Answer{httpapi.OK(ContainerFile{}, "The file."), unknown, lost, unsupported, limited}, Serve: httpapi.Returns(h.upload),
		},
		{
			Method: get, Path: filesPath, ID: "listContainerFiles", Summary: "List the files of a container", Params: append([]httpapi.Param{id}, page...),
			Description: "Files below `" + container.Dir + "`, also those that code has made; hidden ones are omitted.",
			Answers:     []httpapi.Answer{httpapi.OK(ContainerFileList{}, "A page."), unknown, lost}, Serve: httpapi.Returns(h.listFiles),
		},
		{
			Method: get, Path: filePath, ID: "getContainerFile", Summary: "Get a file of a container", Description: "Its path, size and source. A file's id holds as long as its path does.", Params: []httpapi.Param{id, fileID},
			Answers: []httpapi.Answer{httpapi.OK(ContainerFile{}, "The file."), unknown, lost}, Serve: httpapi.Returns(h.getFile),
		},
		{
			Method: get, Path: filePath + "/content", ID: "getContainerFileContent", Summary: "Download a file of a container", Description: "With `Range` a part of it. This counts as a use of the container, and wakes one that sleeps.", Audit: "file_read", Params: []httpapi.Param{id, fileID},
			Answers: []httpapi.Answer{httpapi.Download(httpapi.OctetStream, "Its bytes."), httpapi.Part("With Range: a part of them."), unknown, lost}, Serve: httpapi.Writes(h.content),
		},
		{
			Method: del, Path: filePath, ID: "deleteContainerFile", Summary: "Delete a file of a container", Description: "The file is deleted in the sandbox. This counts as a use of the container.", Audit: "file_delete", Params: []httpapi.Param{id, fileID},
			Answers: []httpapi.Answer{httpapi.OK(DeletedContainerFile{}, "It is gone."), unknown, lost}, Serve: httpapi.Returns(h.deleteFile),
		},
	}
	for i := range ops {
		ops[i].Tag, ops[i].Scope, ops[i].Watched, ops[i].Compat = "containers", tenant.ScopeSandboxes, true, openaiwire.Compat()
	}
	return ops
}
