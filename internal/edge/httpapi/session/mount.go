package session

import (
	"encoding/base64"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// NewMount is something that the sandboxes of a session have from the beginning.
type NewMount struct {
	Type     *string `json:"type" required:"true" enum:"file,git_repository,volume"`
	Path     *string `json:"path" required:"true" empty:"false" doc:"Below /home/user of the sandbox default; of a volume /data/{slug}/{path}, for all sandboxes of the session."`
	Content  *string `json:"content,omitzero" nul:"true" doc:"Of file: up to 128 KiB, of all files together."`
	Encoding *string `json:"encoding,omitzero" enum:"utf-8,base64" default:"utf-8" doc:"Of file: how content is given."`
	URL      *string `json:"url,omitzero" doc:"Of git_repository: an https URL, which the environment's network has to allow."`
	Ref      *string `json:"ref,omitzero" doc:"Of git_repository: a branch, tag or commit."`
	Token    *string `json:"token,omitzero" doc:"Of git_repository: the variable of a secret that is bound to the URL's host, which is its password."`
}

// Mount is a mount as it is shown.
type Mount struct {
	Type  string  `json:"type" enum:"file,git_repository,volume"`
	Path  string  `json:"path"`
	Size  *int    `json:"size,omitzero" doc:"Of file, in bytes."`
	URL   *string `json:"url,omitzero"`
	Ref   *string `json:"ref,omitzero"`
	Token *string `json:"token,omitzero"`
}

func mountOf(m session.Mount) Mount {
	out := Mount{Type: string(m.Type), Path: m.Path, URL: httpapi.OrNull(m.URL), Ref: httpapi.OrNull(m.Ref), Token: httpapi.OrNull(m.Token)}
	if m.Type == session.MountFile {
		out.Size = new(len(m.Content))
	}
	return out
}

// mountsFor are the mounts of a session with an agent.
func mountsFor(d *agent.Definition, in []NewMount) ([]session.Mount, error) {
	if len(in) == 0 {
		return nil, nil
	}
	if !d.Pooled() {
		return nil, httpapi.Invalid("mounts are for the session's named sandboxes: the agent needs the tool sandboxes")
	}
	var out []session.Mount
	for i := range in {
		m, err := in[i].domain(fmt.Sprintf("mounts[%d]", i))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, session.CheckMounts(out)
}

func (in *NewMount) domain(path string) (session.Mount, error) {
	m := session.Mount{Type: session.MountType(*in.Type), Path: *in.Path}
	for _, f := range []struct{ from, to *string }{{in.URL, &m.URL}, {in.Ref, &m.Ref}, {in.Token, &m.Token}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	switch {
	case m.Type != session.MountFile && (in.Content != nil || in.Encoding != nil):
		return m, httpapi.Invalid("%s: content and encoding are of mounts of the type file", path)
	case m.Type == session.MountFile && in.Content == nil:
		return m, httpapi.Invalid("%s.content is required in a mount of the type file", path)
	case in.Content == nil:
		return m, nil
	case in.Encoding != nil && *in.Encoding == "base64":
		var err error
		if m.Content, err = base64.StdEncoding.DecodeString(*in.Content); err != nil {
			return m, httpapi.Invalid("%s.content is not valid base64", path)
		}
	default:
		m.Content = []byte(*in.Content)
	}
	return m, nil
}
