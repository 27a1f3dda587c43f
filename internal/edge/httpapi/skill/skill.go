// Package skill serves skills: folders in the open Agent Skills format, which tenants upload.
package skill

import (
	"bytes"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/skills"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve skills: to keys with the scope read to see them, execute to change them.
type Handlers struct {
	Service *skills.Service
}

// Operations are those of /v1/skills.
func (h *Handlers) Operations() []httpapi.Operation {
	const all, one = "/v1/skills", "/v1/skills/{skill_id}"
	const versions, version = one + "/versions", one + "/versions/{version}"
	id := []httpapi.Param{{Name: "skill_id", In: httpapi.InPath, Doc: "Id or name of a skill."}}
	which := append([]httpapi.Param{{Name: "version", In: httpapi.InPath, Doc: "Id or number of a version, or latest."}}, id...)
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the skill or version does not exist, or belongs to another tenant.")
	taken := httpapi.Refusal(http.StatusConflict, "conflict: the name is taken, the skill is archived, or this is its only version.")
	full := httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: the tenant has the most skills, or bytes of them.")
	unsupported := httpapi.Refusal(http.StatusUnsupportedMediaType, "unsupported_media_type: the body is not multipart/form-data.")
	form := &httpapi.Body{Media: "multipart/form-data"}
	const about = "A form with a field `files[]` for each file, whose file name is its path in the skill's one folder, or for one zip, tar or tar.gz of that folder. `SKILL.md` is at the root of the folder."
	ops := []httpapi.Operation{
		{
			Method: http.MethodGet, Path: all, ID: "listSkills", Summary: "List the tenant's skills, newest first", Description: "Skills that the tenant has uploaded; the server's own are not listed. Archived ones are omitted unless `include_archived` says so.", Scope: tenant.ScopeRead,
			Params: append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool, Doc: "Includes archived ones."},
				httpapi.Param{Name: "source", Enum: []string{"custom", "anthropic"}, Doc: "Only those that come from there: all that there are are custom."}),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Skill]{}, "A page.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodPost, Path: all, ID: "createSkill", Summary: "Upload a skill", Scope: tenant.ScopeExecute, Body: form,
			Description: about + " `display_name` is what people see of it.",
			Answers:     []httpapi.Answer{httpapi.Created(Skill{}, "It is there, with version 1."), taken, unsupported, full}, Serve: httpapi.Returns(h.create),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getSkill", Summary: "Show a skill", Description: "By id or name, with the id of its newest version.", Scope: tenant.ScopeRead, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(Skill{}, "The skill."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteSkill", Summary: "Delete a skill with its versions", Description: "All versions go. An agent that has one of them is not changed: its turns return 409.", Scope: tenant.ScopeExecute, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(DeletedSkill{}, "It is gone. Turns of agents that have it are refused from then on."), unknown}, Serve: httpapi.Returns(h.remove),
		},
		{
			Method: http.MethodPost, Path: one + "/archive", ID: "archiveSkill", Summary: "Archive a skill", Description: "Agents that have it keep it.", Scope: tenant.ScopeExecute, Params: id,
			Answers: []httpapi.Answer{httpapi.OK(Skill{}, "It takes no new versions, and no agent gets it anew. Again is no error."), unknown}, Serve: httpapi.Returns(h.archive),
		},
		{
			Method: http.MethodGet, Path: versions, ID: "listSkillVersions", Summary: "List the versions of a skill, newest first", Description: "Versions never change.", Scope: tenant.ScopeRead,
			Params:  append(httpapi.PageParams(20, 100), id...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[SkillVersion]{}, "A page."), unknown}, Serve: httpapi.Returns(h.versions),
		},
		{
			Method: http.MethodPost, Path: versions, ID: "createSkillVersion", Summary: "Upload another version of a skill", Scope: tenant.ScopeExecute, Params: id, Body: form,
			Description: about,
			Answers:     []httpapi.Answer{httpapi.Created(SkillVersion{}, "The version."), unknown, taken, unsupported, full}, Serve: httpapi.Returns(h.add),
		},
		{
			Method: http.MethodGet, Path: version, ID: "getSkillVersion", Summary: "Show a version of a skill", Description: "By id or number, or `latest`, with its files' paths and sizes.", Scope: tenant.ScopeRead, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(SkillVersion{}, "The version."), unknown}, Serve: httpapi.Returns(h.version),
		},
		{
			Method: http.MethodGet, Path: version + "/content", ID: "getSkillVersionContent", Summary: "Download the files of a version", Description: "It can be uploaded again as it is. With `Range` a part of it.", Scope: tenant.ScopeRead, Params: which,
			Answers: []httpapi.Answer{httpapi.Download(httpapi.OctetStream, "A zip archive of the skill's folder."), httpapi.Part("With Range: a part of it."), unknown}, Serve: httpapi.Writes(h.content),
		},
		{
			Method: http.MethodDelete, Path: version, ID: "deleteSkillVersion", Summary: "Delete a version of a skill", Description: "The only version of a skill cannot be deleted (409): delete the skill.", Scope: tenant.ScopeExecute, Params: which,
			Answers: []httpapi.Answer{httpapi.OK(DeletedSkillVersion{}, "It is gone."), unknown, taken}, Serve: httpapi.Returns(h.removeVersion),
		},
	}
	for i := range ops {
		ops[i].Tag = "skills"
	}
	return ops
}

var (
	shown        = httpapi.Shown(skillOf)
	shownVersion = httpapi.Shown(versionOf)
)

func (h *Handlers) create(c *httpapi.Call) (out Skill, err error) {
	up, err := readForm(c)
	if err != nil {
		return out, err
	}
	return shown(h.Service.Create(c.Context(), c.Caller, up.title, up.bundle))
}

func (h *Handlers) add(c *httpapi.Call) (out SkillVersion, err error) {
	s, err := h.Service.Find(c.Context(), c.Caller.Tenant.ID, c.Path("skill_id"))
	if err != nil {
		return out, err
	}
	up, err := readForm(c)
	if err != nil {
		return out, err
	}
	if up.title != "" {
		return out, httpapi.Invalid("display_name belongs to the skill, not to a version: omit it")
	}
	return shownVersion(h.Service.AddVersion(c.Context(), c.Caller, s, up.bundle))
}

func (h *Handlers) get(c *httpapi.Call) (Skill, error) {
	return shown(h.Service.Find(c.Context(), c.Caller.Tenant.ID, c.Path("skill_id")))
}

func (h *Handlers) archive(c *httpapi.Call) (Skill, error) {
	return shown(h.Service.Archive(c.Context(), c.Caller, c.Path("skill_id")))
}

func (h *Handlers) remove(c *httpapi.Call) (DeletedSkill, error) {
	id, err := h.Service.Delete(c.Context(), c.Caller, c.Path("skill_id"))
	return DeletedSkill{string(id), "skill_deleted"}, err
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Skill], err error) {
	out.Data = []Skill{}
	cursor, err := c.Cursor()
	if err != nil || c.Text("source") == "anthropic" {
		return out, err
	}
	return httpapi.ShownPage(skillOf)(h.Service.Store.List(c.Context(), c.Caller.Tenant.ID, skill.Filter{Page: skill.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived")}))
}

func (h *Handlers) versions(c *httpapi.Call) (out httpapi.Page[SkillVersion], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(versionOf)(h.Service.Versions(c.Context(), c.Caller.Tenant.ID, c.Path("skill_id"), skill.Page{Cursor: cursor, Limit: int(c.Int("limit"))}))
}

func (h *Handlers) findVersion(c *httpapi.Call) (*skill.Version, error) {
	return h.Service.Version(c.Context(), c.Caller.Tenant.ID, c.Path("skill_id"), c.Path("version"))
}

func (h *Handlers) version(c *httpapi.Call) (SkillVersion, error) {
	return shownVersion(h.findVersion(c))
}

func (h *Handlers) removeVersion(c *httpapi.Call) (DeletedSkillVersion, error) {
	id, err := h.Service.DeleteVersion(c.Context(), c.Caller, c.Path("skill_id"), c.Path("version"))
	return DeletedSkillVersion{string(id), "skill_version_deleted"}, err
}

func (h *Handlers) content(c *httpapi.Call) error {
	v, err := h.findVersion(c)
	if err != nil {
		return err
	}
	b, err := h.Service.Store.Content(c.Context(), c.Caller.Tenant.ID, v.ID)
	if err != nil {
		return err
	}
	packed, err := b.Pack()
	if err != nil {
		return err
	}
	return c.ServeTyped(v.Head.Name+".zip", httpapi.OctetStream, v.CreatedAt, bytes.NewReader(packed))
}
