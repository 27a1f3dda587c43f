package session

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// NewMount is something that the sandboxes of a session have from the beginning.
type NewMount struct {
	Type     *string `json:"type" required:"true" enum:"file,git_repository,volume"`
	Path     *string `json:"path,omitzero" empty:"false" doc:"Below /home/user of the sandbox default; of a volume /data/{slug}/{path}, for all sandboxes of the session. With file_id it may be omitted, and for an agent without the tool sandboxes be below /mnt/session, where programs cannot change it: /mnt/session/uploads/{file_id} if omitted, or /home/user/uploads/{file_id} for one with that tool."`
	FileID   *string `json:"file_id,omitzero" doc:"Of file: an uploaded file that it is a copy of, instead of content. For an agent without the tool sandboxes 8 MiB of all together."`
	Content  *string `json:"content,omitzero" nul:"true" doc:"Of file: up to 128 KiB, of all files together."`
	Encoding *string `json:"encoding,omitzero" enum:"utf-8,base64" default:"utf-8" doc:"Of file: how content is given."`
	URL      *string `json:"url,omitzero" doc:"Of git_repository: an https URL, which the environment's network has to allow."`
	Ref      *string `json:"ref,omitzero" doc:"Of git_repository: a branch, tag or commit."`
	Token    *string `json:"token,omitzero" doc:"Of git_repository: the variable of a secret that is bound to the URL's host, which is its password."`
}

// Mount is a mount as it is shown.
type Mount struct {
	Type   string  `json:"type" enum:"file,git_repository,volume"`
	Path   string  `json:"path" doc:"Where it is in the sandbox."`
	FileID *string `json:"file_id,omitzero" doc:"The file's id."`
	Size   *int    `json:"size,omitzero" doc:"Of file with content, in bytes."`
	URL    *string `json:"url,omitzero" doc:"Of git_repository: the URL that is cloned."`
	Ref    *string `json:"ref,omitzero" doc:"Of git_repository: the branch, tag or commit."`
	Token  *string `json:"token,omitzero" doc:"Of git_repository: the variable with the secret that the host is sent."`
}

func mountOf(m session.Mount) Mount {
	out := Mount{Type: string(m.Type), Path: m.Path, FileID: httpapi.OrNull(string(m.File)), URL: httpapi.OrNull(m.URL), Ref: httpapi.OrNull(m.Ref), Token: httpapi.OrNull(m.Token)}
	if m.Type == session.MountFile && m.File == "" {
		out.Size = new(len(m.Content))
	}
	return out
}

// mountsOf reads the mounts of a new session.
func mountsOf(in []NewMount) (out []session.Mount, err error) {
	for i := range in {
		one := &in[i]
		m, err := (&conversation.NewMount{
			Type: session.MountType(*one.Type), Path: one.Path, FileID: one.FileID, Content: one.Content, Encoding: one.Encoding, URL: one.URL, Ref: one.Ref, Token: one.Token,
		}).Mount(fmt.Sprintf("mounts[%d]", i))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
