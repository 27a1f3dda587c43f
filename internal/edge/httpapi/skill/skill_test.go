package skill_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/skills"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/skill/skilltest"
	skillapi "github.com/atoll-run/atoll/internal/edge/httpapi/skill"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func open(t *testing.T) (*httpapitest.Server, *store.DB) {
	t.Helper()
	db := storetest.SQLite(t)
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Skills = &skillapi.Handlers{Service: &skills.Service{Store: db.Skills(), Limits: skill.Limits{Skills: 3}}}
	})
	storetest.Tenant(t, db, s.Caller.Tenant.ID)
	return s, db
}

// send uploads a form: fields by name, and files as files[] by their paths.
func send(t *testing.T, s *httpapitest.Server, path string, fields map[string]string, files ...string) *httptest.ResponseRecorder {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for name, value := range fields {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(files); i += 2 {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="files[]"; filename="` + files[i] + `"`}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte(files[i+1]))
	}
	_ = w.Close()
	return httpapitest.Ask(s, http.MethodPost, path, out.String(), "Content-Type", w.FormDataContentType())
}

const main = "---\nname: report\ndescription: Writes reports.\nallowed-tools: Bash\n---\nBody.\n"

func TestSkills(t *testing.T) {
	s, db := open(t)
	made := httpapitest.Decode[skillapi.Skill](t, send(t, s, "/v1/skills", map[string]string{"display_name": "Reports"}, "report/SKILL.md", main, "report/scripts/a.sh", "#!/bin/sh\n"), http.StatusCreated)
	if made.Name != "report" || made.DisplayName != "Reports" || made.Source.Type != "custom" || made.LatestVersion != 1 || made.Description != "Writes reports." {
		t.Errorf("%+v", made)
	}
	packed, err := skilltest.Bundle(t, "report", "Writes better reports.").Pack()
	if err != nil {
		t.Fatal(err)
	}
	second := httpapitest.Decode[skillapi.SkillVersion](t, send(t, s, "/v1/skills/report/versions", nil, "report.zip", string(packed)), http.StatusCreated)
	if second.Version != 2 || second.SkillID != made.ID || len(second.Files) != 3 || !second.Files[2].Executable {
		t.Errorf("%+v", second)
	}
	at := "/v1/skills/" + made.ID
	for _, name := range []string{"2", "latest", second.ID} {
		got := httpapitest.Ask(s, "GET", at+"/versions/"+name+"/content", "")
		if got.Code != http.StatusOK || got.Body.String() != string(packed) || got.Header().Get("Content-Type") != "application/octet-stream" {
			t.Errorf("content of %s: %d %v", name, got.Code, got.Header())
		}
	}
	first := httpapitest.Decode[skillapi.SkillVersion](t, httpapitest.Ask(s, "GET", at+"/versions/1", ""), http.StatusOK)
	if first.AllowedTools[0] != "Bash" || !first.Files[1].Executable || first.Files[0].Executable {
		t.Errorf("%+v", first)
	}
	httpapitest.Refused(t, send(t, s, "/v1/skills", nil, "report/SKILL.md", main), http.StatusConflict, "conflict", "has a skill")
	httpapitest.Decode[skillapi.DeletedSkillVersion](t, httpapitest.Ask(s, "DELETE", at+"/versions/1", ""), http.StatusOK)
	httpapitest.Refused(t, httpapitest.Ask(s, "DELETE", at+"/versions/2", ""), http.StatusConflict, "conflict", "only version")
	if got := httpapitest.Decode[skillapi.Skill](t, httpapitest.Ask(s, "POST", at+"/archive", ""), http.StatusOK); got.ArchivedAt == nil {
		t.Errorf("%+v", got)
	}
	httpapitest.Refused(t, send(t, s, at+"/versions", nil, "SKILL.md", main), http.StatusConflict, "conflict", "archived")
	for query, want := range map[string]int{"": 0, "?include_archived=true": 1, "?include_archived=true&source=anthropic": 0} {
		var page struct{ Data []skillapi.Skill }
		if page = httpapitest.Decode[struct{ Data []skillapi.Skill }](t, httpapitest.Ask(s, "GET", "/v1/skills"+query, ""), http.StatusOK); len(page.Data) != want {
			t.Errorf("%q lists %+v", query, page)
		}
	}
	if gone := httpapitest.Decode[skillapi.DeletedSkill](t, httpapitest.Ask(s, "DELETE", at, ""), http.StatusOK); gone.Type != "skill_deleted" || gone.ID != made.ID {
		t.Errorf("%+v", gone)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", at, ""), http.StatusNotFound, "not_found", "skill not found")
	events, err := db.Tenants().PolicyEvents(t.Context(), s.Caller.Tenant.ID)
	if err != nil || len(events) != 5 || events[0].Field != "skill/"+made.ID || events[4].New != "deleted" {
		t.Errorf("the trail of policy is %+v, %v", events, err)
	}
}

// TestForeignSkills: another tenant's skill answers as one that there is not.
func TestForeignSkills(t *testing.T) {
	s, db := open(t)
	theirs := skilltest.New("ten_other")
	if err := db.Skills().Create(t.Context(), theirs, skilltest.Bundle(t, "report", "x"), skill.Limits{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{string(theirs.ID), "report"} {
		at := "/v1/skills/" + name
		for _, op := range []string{"GET " + at, "DELETE " + at, "POST " + at + "/archive", "GET " + at + "/versions", "GET " + at + "/versions/1", "GET " + at + "/versions/1/content", "DELETE " + at + "/versions/" + string(theirs.Latest.ID)} {
			verb, path, _ := strings.Cut(op, " ")
			httpapitest.Refused(t, httpapitest.Ask(s, verb, path, ""), http.StatusNotFound, "not_found", "skill not found")
		}
		httpapitest.Refused(t, send(t, s, at+"/versions", nil, "SKILL.md", main), http.StatusNotFound, "not_found", "skill not found")
	}
	own := httpapitest.Decode[skillapi.Skill](t, send(t, s, "/v1/skills", nil, "SKILL.md", main), http.StatusCreated)
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/skills/"+own.ID+"/versions/"+string(theirs.Latest.ID), ""), http.StatusNotFound, "not_found", "version not found")
}

func TestRefusedUploads(t *testing.T) {
	s, _ := open(t)
	const path = "/v1/skills"
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", path, `{}`), http.StatusUnsupportedMediaType, "unsupported_media_type", "multipart/form-data")
	for why, w := range map[string]*httptest.ResponseRecorder{
		"SKILL.md":         send(t, s, path, nil),
		"front matter":     send(t, s, path, nil, "SKILL.md", "hello"),
		"other":            send(t, s, path, map[string]string{"other": "x"}, "SKILL.md", main),
		"one line":         send(t, s, path, map[string]string{"display_name": "a\nb"}, "SKILL.md", main),
		". and ..":         send(t, s, path, nil, "SKILL.md", main, "../a", ""),
		"cannot be read":   send(t, s, path, nil, "a.tar", "no tar"),
		"8388608 bytes":    send(t, s, path, nil, "SKILL.md", main, "big", strings.Repeat("x", skill.MaxBytes)),
		"must be the same": send(t, s, path, nil, "other/SKILL.md", main),
	} {
		httpapitest.Refused(t, w, http.StatusBadRequest, "validation_error", why)
	}
	half := "--x\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"SKILL.md\"\r\n\r\nhalf"
	httpapitest.Refused(t, httpapitest.Ask(s, http.MethodPost, path, half, "Content-Type", "multipart/form-data; boundary=x"), http.StatusBadRequest, "validation_error", "multipart/form-data")
}
