// Package skill serves skills: folders in the open Agent Skills format, which tenants upload.
package skill

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve skills: to keys with the scope read to see them, execute to change them.
type Handlers struct {
	Store  skill.Store
	Limits skill.Limits // of each tenant
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

// event notes a change of a skill.
func event(c *httpapi.Call, id skill.ID, old, now string) tenant.PolicyEvent {
	return tenant.PolicyEvent{Tenant: c.Caller.Tenant.ID, Actor: c.Caller.Key.ID, Field: "skill/" + string(id), Old: old, New: now, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
}

// find is the skill of a request, by its id or name.
func (h *Handlers) find(c *httpapi.Call) (*skill.Skill, error) {
	name := c.Path("skill_id")
	if !skill.ID(name).Valid() && skill.CheckName("skill_id", name) != nil {
		return nil, skill.ErrNotFound
	}
	return h.Store.Get(c.Context(), c.Caller.Tenant.ID, name)
}

func (h *Handlers) create(c *httpapi.Call) (out Skill, err error) {
	up, err := readForm(c)
	if err != nil {
		return out, err
	}
	s := &skill.Skill{ID: skill.NewID(), Tenant: c.Caller.Tenant.ID, Title: up.title, Latest: skill.Version{ID: skill.NewVersionID()}}
	if err := h.Store.Create(c.Context(), s, up.bundle, h.Limits, event(c, s.ID, "", "version 1")); err != nil {
		return out, err
	}
	return skillOf(s), nil
}

func (h *Handlers) add(c *httpapi.Call) (out SkillVersion, err error) {
	s, err := h.find(c)
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
	s.Latest = skill.Version{ID: skill.NewVersionID()}
	if err := h.Store.AddVersion(c.Context(), s, up.bundle, h.Limits, event(c, s.ID, "", "version "+string(s.Latest.ID))); err != nil {
		return out, err
	}
	return versionOf(&s.Latest), nil
}

func (h *Handlers) get(c *httpapi.Call) (out Skill, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	return skillOf(s), nil
}

func (h *Handlers) archive(c *httpapi.Call) (out Skill, err error) {
	s, err := h.find(c)
	if err == nil {
		s, err = h.Store.Archive(c.Context(), s.Tenant, s.ID, event(c, s.ID, "", "archived"))
	}
	if err != nil {
		return out, err
	}
	return skillOf(s), nil
}

func (h *Handlers) remove(c *httpapi.Call) (out DeletedSkill, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	return DeletedSkill{string(s.ID), "skill_deleted"}, h.Store.Delete(c.Context(), s.Tenant, s.ID, event(c, s.ID, s.Name, "deleted"))
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Skill], err error) {
	out.Data = []Skill{}
	cursor, err := c.Cursor()
	if err != nil || c.Text("source") == "anthropic" {
		return out, err
	}
	page, next, err := h.Store.List(c.Context(), c.Caller.Tenant.ID, skill.Filter{Page: skill.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived")})
	return httpapi.Page[Skill]{Data: httpapi.Each(page, func(s skill.Skill) Skill { return skillOf(&s) }), NextPage: httpapi.OrNull(next)}, err
}

func (h *Handlers) versions(c *httpapi.Call) (out httpapi.Page[SkillVersion], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	page, next, err := h.Store.Versions(c.Context(), s.Tenant, s.ID, skill.Page{Cursor: cursor, Limit: int(c.Int("limit"))})
	return httpapi.Page[SkillVersion]{Data: httpapi.Each(page, func(v skill.Version) SkillVersion { return versionOf(&v) }), NextPage: httpapi.OrNull(next)}, err
}

// findVersion is the version of a request, by its id or number, or the latest one.
func (h *Handlers) findVersion(c *httpapi.Call) (*skill.Skill, *skill.Version, error) {
	s, err := h.find(c)
	if err != nil {
		return nil, nil, err
	}
	v, err := skill.Resolve(c.Context(), h.Store, s, c.Path("version"))
	return s, v, err
}

func (h *Handlers) version(c *httpapi.Call) (out SkillVersion, err error) {
	_, v, err := h.findVersion(c)
	if err != nil {
		return out, err
	}
	return versionOf(v), nil
}

func (h *Handlers) removeVersion(c *httpapi.Call) (out DeletedSkillVersion, err error) {
	s, v, err := h.findVersion(c)
	if err != nil {
		return out, err
	}
	return DeletedSkillVersion{string(v.ID), "skill_version_deleted"}, h.Store.DeleteVersion(c.Context(), s.Tenant, s.ID, v.ID, event(c, s.ID, fmt.Sprintf("version %d", v.Number), "deleted"))
}

func (h *Handlers) content(c *httpapi.Call) error {
	_, v, err := h.findVersion(c)
	if err != nil {
		return err
	}
	b, err := h.Store.Content(c.Context(), c.Caller.Tenant.ID, v.ID)
	if err != nil {
		return err
	}
	packed, err := b.Pack()
	if err != nil {
		return err
	}
	return c.ServeTyped(v.Head.Name+".zip", httpapi.OctetStream, v.CreatedAt, bytes.NewReader(packed))
}
