package session_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/session"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestMessageFiles: a message may have files, which its tools are given and its events name.
func TestMessageFiles(t *testing.T) {
	k := open(t, `{}`)
	for body, want := range map[string]string{
		`"files":{"../a":"x"}`: "files", `"files":{"/a":"x"}`: "files", `"files":{"a":"x"},"files_base64":{"a":"eA=="}`: "must not both have",
		`"files_base64":{"a":"?"}`: "must have base64", `"files":{"a":7}`: "files", `"files":["a"]`: "files", fmt.Sprintf(`"files":{"a":%q}`, strings.Repeat("x", session.MaxMessage+1)): "at most 100 files and",
	} {
		httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"x",`+body+`}`, "Content-Type", "application/json"), http.StatusBadRequest, "validation_error", want)
	}
	httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"tool_confirmation","tool_use_id":"x","approve":true,"files":{"a":"x"}}`, "Content-Type", "application/json"), http.StatusBadRequest, "validation_error", "files has no meaning")
	if turn := k.post(200, `{"type":"message","content":"look at both","files":{"data/in.csv":"a,b"},"files_base64":{"b.bin":"AAE="}}`); turn.Status != "completed" {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(200, "GET", k.path+"/events?types=message", "", &page)
	if e := page.Data[0]; e.Files == nil || !slices.Equal(*e.Files, []string{"b.bin", "data/in.csv"}) || *e.Content != "look at both" {
		t.Errorf("%+v", e)
	}
	var files struct{ Data []sessionapi.SessionFile }
	k.ask(200, "GET", k.path+"/files", "", &files)
	if len(files.Data) != 0 {
		t.Errorf("%+v", files)
	}
	for _, id := range []string{"file_" + strings.Repeat("0", 36), "file_" + strings.Repeat("a", 48), "other"} {
		k.ask(404, "GET", k.path+"/files/"+id+"/content", "", nil)
	}
}
