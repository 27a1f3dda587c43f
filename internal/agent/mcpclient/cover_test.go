package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCoveredForms: a server that returns what it is asked with does so in JSON, too, as text and
// as structured content.
func TestCoveredForms(t *testing.T) {
	const secret = `s3"cr\et/<ö>&` + "\u2028\t\b\x7f1"
	cover := Target{URL: "https://x.example", Headers: map[string]string{"Authorization": "Bearer " + secret}}.cover()
	plain, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(plain), // as Go
		`s3\"cr\\et/<ö>&` + "\u2028" + `\t\b` + "\x7f1",    // as JavaScript
		`s3\"cr\\et/<\u00f6>&\u2028\t\b\u007f1`,            // as Python
		`s3\"cr\\et\/<\u00f6>&\u2028\t\b` + `\u007f` + `1`, // as PHP
	} {
		if got := cover.Replace(text); strings.Contains(got, "cr") {
			t.Errorf("%s is %s", text, got)
		}
	}
	got, err := structured(map[string]any{"say": []any{secret, 1, nil, map[string]any{secret: "Bearer " + secret}}}, cover)
	if want := `{"say":["[covered]",1,null,{"[covered]":"[covered]"}]}`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := structured(json.RawMessage(`{"n":12345678901234567890}`), cover); err != nil || got != `{"n":12345678901234567890}` {
		t.Errorf("%s, %v", got, err)
	}
}
