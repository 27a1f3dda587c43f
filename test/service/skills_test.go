package service

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"encoding/json"
)

// TestSkills drives Anthropic's client through all that it knows of skills, and has an agent use
// a folder in its session's sandbox, where it can be read and run, and not be changed.
func TestSkills(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "skills", "enterprise")
	lendModel(t, s, "skilled", planner(t).URL, "tools")
	out := python(t, filepath.Join("clients", "skills_client.py"), "ATOLL_URL="+s.URL, "ATOLL_KEY="+key)
	if said := strings.Join(strings.Fields(out), " "); said != "create versions delete refused agents" {
		t.Errorf("it said %q", said)
	}
	var made struct{ ID string }
	agent := map[string]any{"name": "Writer", "model": map[string]string{"name": "skilled"}, "tools": []any{map[string]string{"type": "sandbox"}}, "skills": []string{"report"}}
	s.Must(t, key, http.MethodPost, "/v1/agents", agent).Into(t, http.StatusCreated, &made)
	s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]string{"agent_id": made.ID}).Into(t, http.StatusCreated, &made)
	const code = `cd /skills/report && ls -R . | tr '\n' ' ' && cat references/form.txt && scripts/run.sh
for f in SKILL.md new references/new; do echo x 2>/dev/null >$f && echo "wrote $f"; done
rm -f SKILL.md 2>/dev/null || echo kept; mv /skills/report /skills/other 2>/dev/null || echo stays; touch $HOME/.there`
	steps, err := json.Marshal([]toolStep{{"read_skill", map[string]any{"skill": "report"}}, {"run_code", map[string]any{"language": "bash", "code": code}},
		{"run_code", map[string]any{"language": "bash", "code": code + "; head -3 /skills/report/SKILL.md"}}})
	if err != nil {
		t.Fatal(err)
	}
	var turn struct{ Content, Status string }
	s.Must(t, key, http.MethodPost, "/v1/sessions/"+made.ID+"/events", map[string]string{"type": "message", "content": string(steps)}).Into(t, http.StatusOK, &turn)
	for _, want := range []string{"Dear customer", "ran", "kept", "stays", "description: Writes better reports."} {
		if !strings.Contains(turn.Content, want) {
			t.Errorf("the program does not say %q: %s", want, turn.Content)
		}
	}
	if turn.Status != "completed" || strings.Contains(turn.Content, "wrote") {
		t.Errorf("the program says %+v", turn)
	}
	var shown struct{ Instructions string }
	s.Must(t, key, http.MethodGet, "/v1/sessions/"+made.ID+"/context", nil).Into(t, http.StatusOK, &shown)
	if !strings.Contains(shown.Instructions, "- report: Writes better reports.") {
		t.Errorf("the prompt is %q", shown.Instructions)
	}
}
