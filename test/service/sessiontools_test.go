package service

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// asleep waits until the sandboxes of a session sleep on disk.
func (k *talker) asleep(count int) {
	k.Helper()
	atolltest.Until(k, time.Minute, "all sleep on disk", func() bool {
		a := k.line.now().Must(k, k.key, http.MethodGet, "/v1/sandboxes?session="+k.id(), nil)
		return a.Status == http.StatusOK && strings.Count(string(a.Body), `"kept":"disk"`) == count
	})
}

// namedTools: an agent with named sandboxes edits, searches, patches and shares files in them
// as one with the other sandbox does, before and after they slept and after the server was
// killed.
func namedTools(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_SANDBOX_SLEEP_AFTER=2s", "ATOLL_SANDBOX_FROZEN=1s")
	k := &talker{t, line, line.now().Tenant(t, "named-tools", "enterprise"), ""}
	addModel(t, line.now(), "scripted", planner(t).URL, "tools")
	helper := k.begin(map[string]any{"tools": []any{map[string]string{"type": "sandboxes"}}})
	does := func(want string, steps ...toolStep) {
		t.Helper()
		if said := helper.plans("completed", steps...); !strings.Contains(said, want) {
			t.Errorf("%v: it says %q, not %q", steps, said, want)
		}
	}
	edit := func(old, text string) map[string]any {
		return map[string]any{"file_path": "src/a.py", "old_string": old, "new_string": text}
	}
	does("in one place", toolStep{"write_file", map[string]any{"path": "src/a.py", "content": "a = 1\nb = 1\n"}}, toolStep{"edit_file", edit("a = 1", "a = 2")})
	does("is not in", toolStep{"edit_file", edit("nothing like it", "x")})
	does("2:b = 1", toolStep{"grep", map[string]any{"pattern": "^b", "path": "src"}})
	does("No line matches.", toolStep{"grep", in("two", map[string]any{"pattern": "^b"})})
	const patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-b = 1\n+b = 3\n*** Add File: src/new.txt\n+new\n*** End Patch"
	does("A src/new.txt", toolStep{"apply_patch", map[string]any{"patch": patch}})
	does("4 bytes. The user can download it", toolStep{"share_file", map[string]any{"file_path": "src/new.txt"}})
	does("no such file", toolStep{"share_file", map[string]any{"file_path": "src/none"}})
	does("11 bytes", toolStep{"shell", in("two", sh("echo of another > /tmp/report.csv; truncate -s 11 /tmp/report.csv"))}, toolStep{"share_file", in("two", map[string]any{"file_path": "/tmp/report.csv"})})

	helper.asleep(2)
	does("in one place", toolStep{"edit_file", edit("a = 2", "a = 4")})
	line.next(syscall.SIGKILL)
	does("1:a = 4", toolStep{"grep", map[string]any{"pattern": "."}}, toolStep{"grep", map[string]any{"pattern": "a =", "path": "src/a.py"}})
	var shared struct {
		Data []struct {
			ID, Filename string
			Bytes        int64
		}
	}
	line.now().Must(t, k.key, http.MethodGet, helper.path+"/files", nil).Into(t, http.StatusOK, &shared)
	if len(shared.Data) != 2 || shared.Data[0].Filename != "new.txt" || shared.Data[1].Filename != "report.csv" {
		t.Fatalf("%+v are shared", shared)
	}
	for i, want := range []string{"new\n", "of another\n"} {
		if a := line.now().Must(t, k.key, http.MethodGet, helper.path+"/files/"+shared.Data[i].ID+"/content", nil); string(a.Body) != want {
			t.Errorf("%s has %d %q", shared.Data[i].Filename, a.Status, a.Body)
		}
	}
	files := 0
	for _, e := range helper.events("&types=file") {
		if e.Type == "file" {
			files++
		}
	}
	if files != 2 {
		t.Errorf("there are %d events of files", files)
	}
	// They go with the session.
	line.now().Must(t, k.key, http.MethodDelete, helper.path, nil).Into(t, http.StatusNoContent, nil)
	if a := line.now().Must(t, k.key, http.MethodGet, helper.path+"/files/"+shared.Data[0].ID+"/content", nil); a.Status != http.StatusNotFound {
		t.Errorf("after the session there is %d %s", a.Status, a.Body)
	}
}

// pushSkill uploads a skill of some files.
func (k *talker) pushSkill(files map[string]string) {
	k.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		part, err := form.CreateFormFile("files[]", name)
		if err != nil {
			k.Fatal(err)
		}
		_, _ = io.WriteString(part, files[name]) // a buffer takes all
	}
	if err := form.Close(); err != nil {
		k.Fatal(err)
	}
	r, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.line.now().URL+"/v1/skills", &body)
	if err != nil {
		k.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.key)
	r.Header.Set("Content-Type", form.FormDataContentType())
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		k.Fatal(err)
	}
	defer a.Body.Close()
	if text, _ := io.ReadAll(a.Body); a.StatusCode != http.StatusCreated {
		k.Fatalf("the skill is refused: %d %s", a.StatusCode, text)
	}
}

// namedSkills: the folders of an agent's skills are in each of its named sandboxes, for
// programs to read and run; also in one whose environment has most of it read-only, and after
// sleep.
func namedSkills(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_SANDBOX_SLEEP_AFTER=2s", "ATOLL_SANDBOX_FROZEN=1s")
	k := &talker{t, line, line.now().Tenant(t, "named-skills", "enterprise"), ""}
	addModel(t, line.now(), "scripted", planner(t).URL, "tools")
	k.pushSkill(map[string]string{
		"report/SKILL.md": "---\nname: report\ndescription: Writes reports.\n---\nDo it.\n", "report/scripts/run.sh": "#!/bin/sh\necho ran\n", "report/references/form.txt": "Dear customer\n",
	})
	const code = `cd /skills/report && cat references/form.txt && scripts/run.sh
for f in SKILL.md new references/new; do echo x 2>/dev/null >$f && echo "wrote $f"; done
rm -f SKILL.md 2>/dev/null || echo kept; mv /skills/report /skills/other 2>/dev/null || echo stays`
	const want = "Dear customer\nran\nkept\nstays\n"
	agent := map[string]any{"tools": []any{map[string]string{"type": "sandboxes"}}, "skills": []string{"report"}}
	check := func(t *testing.T, k *talker) {
		t.Helper()
		for _, name := range []string{"default", "two"} {
			if said := k.plans("completed", toolStep{"shell", in(name, sh(code))}); !strings.Contains(said, want) || strings.Contains(said, "wrote") {
				t.Errorf("in %s the program says %q", name, said)
			}
		}
		k.asleep(2)
		if said := k.plans("completed", toolStep{"shell", sh(code)}); !strings.Contains(said, want) {
			t.Errorf("after sleep the program says %q\n%s", said, line.now().Log())
		}
	}
	helper := k.begin(agent)
	check(t, helper)
	var shown struct{ Instructions string }
	line.now().Must(t, k.key, http.MethodGet, helper.path+"/context", nil).Into(t, http.StatusOK, &shown)
	if !strings.Contains(shown.Instructions, "in each of your sandboxes, read-only: /skills/NAME") {
		t.Errorf("the prompt is %q", shown.Instructions)
	}
	s := line.now()
	restricted := map[string]any{"permissions": map[string]any{"filesystem": map[string]any{"writable_paths": []string{"/home/user", "/tmp"}}}}
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/named-skills/environments/main", restricted).Into(t, http.StatusOK, nil)
	t.Run("read-only", func(t *testing.T) { check(t, k.on(t).begin(agent)) })
}

// namedWeb: commands of an agent in named sandboxes call the services of the web without a
// network, as code of the other sandbox does, and each call is counted. One that goes on when the
// server is killed reaches the next server.
func namedWeb(t *testing.T) {
	url, asked := slowSearch(t)
	line := newSuccession(t, "ATOLL_SEARCH_PROVIDER=searxng", "ATOLL_SEARCH_URL="+url, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_SANDBOX_SLEEP_AFTER=2s", "ATOLL_SANDBOX_FROZEN=1s")
	s := line.now()
	k := &talker{t, line, s.Tenant(t, "named-web", "enterprise"), ""}
	addModel(t, s, "scripted", planner(t).URL, "tools")
	// A session's searches are held to the network of its environment.
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/named-web", map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	network := map[string]any{"permissions": map[string]any{"network": map[string]any{"enabled": true}}}
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/named-web/environments/main", network).Into(t, http.StatusOK, nil)
	helper := k.begin(map[string]any{"tools": []any{map[string]string{"type": "sandboxes"}}})
	const search = `atoll-web search -n 1 atolls | jq -r '.[0].title'; `
	for _, name := range []string{"default", "two"} {
		if said := helper.plans("completed", toolStep{"shell", in(name, sh(search+"echo $ATOLL_WEB_TOKEN > token"))}); !strings.Contains(said, "Found\n") {
			t.Errorf("in %s it says %q\n%s", name, said, line.now().Log())
		}
	}
	if said := helper.plans("completed", toolStep{"shell", sh("ATOLL_WEB_TOKEN=$(cat token) atoll-web search x 2>&1 || echo refused")}); !strings.Contains(said, "refused") {
		t.Errorf("with the token of a call that has ended it says %q", said)
	}
	var out struct{ Stdout string }
	if helper.uses("shell", sh("echo $ATOLL_WEB_URL"), http.StatusOK, &out); out.Stdout != "\n" {
		t.Errorf("the client's command has the URL %q", out.Stdout)
	}
	helper.asleep(2)
	if said := helper.plans("completed", toolStep{"shell", sh(search)}); !strings.Contains(said, "Found\n") {
		t.Errorf("after sleep it says %q", said)
	}
	for len(asked) > 0 {
		<-asked
	}
	const code = `import atoll_web, time
try: atoll_web.search("slow")
except Exception as e: print("broken off")
for _ in range(100):
    try: print(atoll_web.search("last")[0]["title"]); break
    except Exception as e: time.sleep(0.1)
`
	text, err := json.Marshal([]toolStep{{"write_file", map[string]any{"path": "a.py", "content": code}}, {"shell", sh("python3 a.py")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := line.now().Call(t.Context(), k.key, http.MethodPost, helper.path+"/events", message(string(text)), http.Header{"Prefer": {"respond-async"}}); err != nil {
		t.Fatal(err)
	}
	for q := ""; !strings.HasPrefix(q, "slow"); {
		select {
		case q = <-asked:
		case <-time.After(time.Minute):
			t.Fatalf("nothing is searched for\n%s", line.now().Log())
		}
	}
	line.next(syscall.SIGKILL)
	helper.until("idle")
	events := helper.events("&types=message")
	if said := events[len(events)-1].Content; !strings.Contains(said, "broken off\nFound\n") {
		t.Errorf("after the server was killed it says %q\n%s", said, line.now().Log())
	}
	if used := calls(t, line.now(), k.key); used["web_search"] != 4 {
		t.Errorf("charged are %v", used)
	}
}
