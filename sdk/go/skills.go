package atoll

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
)

const skills = "/v1/skills"

// skillForm is a form with a zip archive of a skill's folder.
func skillForm(displayName string, archive []byte) (*form, error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	to, err := w.CreateFormFile("files[]", "skill.zip")
	if err == nil {
		_, err = to.Write(archive)
	}
	if err == nil && displayName != "" {
		err = w.WriteField("display_name", displayName)
	}
	if err == nil {
		err = w.Close()
	}
	return &form{&out, w.FormDataContentType()}, err
}

// Skills returns skills, newest first. archived adds those
// that are archived.
func (c *Client) Skills(archived bool) *Pager[Skill] {
	return &Pager[Skill]{c: c, path: skills, query: url.Values{"include_archived": {strconv.FormatBool(archived)}, "limit": {"100"}}}
}

// Skill returns a skill by its id or name.
func (c *Client) Skill(ctx context.Context, idOrName string) (Skill, error) {
	return call[Skill](ctx, c, http.MethodGet, under(skills, idOrName), nil, nil)
}

// CreateSkill creates a skill from a zip archive of its folder.
func (c *Client) CreateSkill(ctx context.Context, displayName string, archive []byte) (Skill, error) {
	f, err := skillForm(displayName, archive)
	if err != nil {
		return Skill{}, err
	}
	return call[Skill](ctx, c, http.MethodPost, skills, nil, f)
}

// AddSkillVersion creates a new version of a skill from a zip archive of its folder.
func (c *Client) AddSkillVersion(ctx context.Context, idOrName string, archive []byte) (SkillVersion, error) {
	f, err := skillForm("", archive)
	if err != nil {
		return SkillVersion{}, err
	}
	return call[SkillVersion](ctx, c, http.MethodPost, under(skills, idOrName, "versions"), nil, f)
}

// SkillVersions returns versions of a skill, newest first.
func (c *Client) SkillVersions(idOrName string) *Pager[SkillVersion] {
	return &Pager[SkillVersion]{c: c, path: under(skills, idOrName, "versions"), query: url.Values{"limit": {"100"}}}
}

// SkillVersion returns a version of a skill by its id or number, or the latest one.
func (c *Client) SkillVersion(ctx context.Context, idOrName, version string) (SkillVersion, error) {
	return call[SkillVersion](ctx, c, http.MethodGet, under(skills, idOrName, "versions", version), nil, nil)
}

// SkillContent writes a zip archive of a version's folder to w.
func (c *Client) SkillContent(ctx context.Context, idOrName, version string, w io.Writer) error {
	return c.download(ctx, w, under(skills, idOrName, "versions", version, "content"), nil)
}

// ArchiveSkill archives a skill. Repeating the call is not an error.
func (c *Client) ArchiveSkill(ctx context.Context, idOrName string) (Skill, error) {
	return call[Skill](ctx, c, http.MethodPost, under(skills, idOrName, "archive"), nil, nil)
}

// DeleteSkill deletes a skill with its versions.
func (c *Client) DeleteSkill(ctx context.Context, idOrName string) error {
	return c.do(ctx, http.MethodDelete, under(skills, idOrName), nil)
}

// DeleteSkillVersion deletes a version of a skill.
func (c *Client) DeleteSkillVersion(ctx context.Context, idOrName, version string) error {
	return c.do(ctx, http.MethodDelete, under(skills, idOrName, "versions", version), nil)
}
