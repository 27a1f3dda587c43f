package service

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// planting has programs of the home directory note that something has run them.
const planting = `user=$(python3 -c 'import site; print(site.getusersitepackages())') word=PLAN
mkdir -p .local/bin "$user"
for name in json csv io re zipfile tempfile subprocess sitecustomize usercustomize encodings; do
	echo "open('/home/user/log', 'a').write('${word}TED $name.py ')" | tee $name.py > "$user/$name.py"
done
for name in python3 python pdftotext soffice chromium sh env; do
	printf '#!/bin/sh\necho %sTED %s >> /home/user/log\n' $word $name > .local/bin/$name
	chmod +x .local/bin/$name
done
echo "echo ${word}TED by bash >> /home/user/log" > started.sh
echo mine > main.py
`

// printedPage is a PDF file, whose table of objects readers rebuild.
const printedPage = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n" +
	"4 0 obj<</Length 47>>stream\nBT /F1 12 Tf 72 200 Td (Agreed in print) Tj ET\nendstream endobj\n" +
	"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\nxref\n0 1\n0000000000 65535 f \ntrailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF\n"

// TestFileManagement has an agent convert, read and put away documents in its session's
// sandbox. Without the skill it has no such tools.
func TestFileManagement(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "documents", "enterprise")
	lendModel(t, s, "clerk", planner(t).URL, "tools")
	skill := map[string]any{"name": "file-management", "config": map[string]any{"formats": []string{"docx", "xlsx", "pdf"}}}
	session := func(name string, skills ...any) string {
		var made struct{ ID string }
		agent := map[string]any{"name": name, "model": map[string]string{"name": "clerk"}, "tools": []any{map[string]string{"type": "sandbox"}}, "skills": skills}
		s.Must(t, key, http.MethodPost, "/v1/agents", agent).Into(t, http.StatusCreated, &made)
		s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]string{"agent_id": made.ID}).Into(t, http.StatusCreated, &made)
		return "/v1/sessions/" + made.ID
	}
	variables := map[string]string{"PYTHONPATH": "/home/user", "PYTHONSTARTUP": "/home/user/json.py", "BASH_ENV": "/home/user/started.sh"}
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/documents/environments/main", map[string]any{"env_vars": variables}).Into(t, http.StatusOK, nil)
	of := session("Clerk", skill)
	file := func(from, to string) map[string]any { return map[string]any{"file_path": from, "to_path": to} }
	steps, err := json.Marshal([]toolStep{
		{"write_file", map[string]any{"file_path": "notes.md", "content": "# Minutes\n\nAll agreed.\n"}},
		{"write_file", map[string]any{"file_path": "sums.csv", "content": "item,euros\ncoffee,12.5\n"}},
		{"run_code", map[string]any{"language": "bash", "code": planting}},
		{"convert_document", file("notes.md", "notes.docx")}, {"convert_document", file("sums.csv", "sums.xlsx")},
		{"organize_files", map[string]any{"moves": []any{map[string]string{"from_path": "notes.docx", "to_path": "minutes/2026.docx"}, map[string]string{"from_path": "sums.xlsx", "to_path": "sums/2026.xlsx"}}}},
		{"read_document", map[string]any{"file_path": "minutes/2026.docx"}}, {"read_document", map[string]any{"file_path": "sums/2026.xlsx"}},
		{"read_document", map[string]any{"file_path": "notes.docx"}}, {"read_document", map[string]any{"file_path": "slides.pptx"}},
		{"convert_document", file("sums.csv", "sums.md")}, {"read_file", map[string]any{"file_path": "log"}}, {"read_file", map[string]any{"file_path": "main.py"}},
		{"run_code", map[string]any{"language": "bash", "code": "rm -f .local/bin/*; ls -d minutes/* sums/*"}},
		{"write_file", map[string]any{"file_path": "x.pdf", "content": printedPage}},
		{"read_document", map[string]any{"file_path": "x.pdf"}}, {"convert_document", file("notes.md", "notes.pdf")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var turn struct{ Content, Status string }
	s.Must(t, key, http.MethodPost, of+"/events", map[string]string{"type": "message", "content": string(steps)}).Into(t, http.StatusOK, &turn)
	events := string(s.Must(t, key, http.MethodGet, of+"/events?limit=100", nil).Body)
	for _, want := range []string{"# Minutes\\n\\nAll agreed.", "| coffee | 12.5 |", "there is no file notes.docx", "pptx is not among the formats", "minutes/2026.docx", "pages 1 to 1 of 1:\\nAgreed in print", "add chromium to packages.apt", "mine\\n"} {
		if !strings.Contains(events, want) {
			t.Errorf("the turn does not say %q: %s", want, events)
		}
	}
	if strings.Contains(events, "PLANTED") {
		t.Errorf("the skill's programs have run what lies in the home directory: %s", events)
	}
	if turn.Status != "completed" {
		t.Errorf("the turn is %+v", turn)
	}
	var shown struct {
		Instructions string
		Tools        []struct{ Name string }
	}
	names := func(of string) string {
		s.Must(t, key, http.MethodGet, of+"/context", nil).Into(t, http.StatusOK, &shown)
		text := ""
		for _, tool := range shown.Tools {
			text += tool.Name + " "
		}
		return text
	}
	if all := names(of); !strings.Contains(all, "read_document convert_document organize_files") || !strings.Contains(shown.Instructions, "DOCX, XLSX, PDF") {
		t.Errorf("the turn has %s: %s", all, shown.Instructions)
	}
	if all := names(session("Other")); strings.Contains(all, "document") {
		t.Errorf("without the skill it has %s", all)
	}
}
