package redteam

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"strings"
	"testing"
)

// TestReveal checks that a secret is seen in each form, and only where it is.
func TestReveal(t *testing.T) {
	a := &arena{secrets: makeSecrets()}
	for name, value := range a.secrets {
		digits := hex.EncodeToString([]byte(value))
		forms := map[string]string{
			"itself": value, "in a line": "x " + value + " y", "hex": digits, "capitals": strings.ToUpper(digits), "hex in lines": digits[:33] + "\n" + digits[33:],
			"HTML": html.EscapeString(value),
		}
		var percent strings.Builder
		for i := 0; i < len(digits); i += 2 {
			percent.WriteString("%" + digits[i:i+2])
		}
		forms["percent"] = percent.String()
		for _, before := range []string{"", "a", "ab"} {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				text := e.EncodeToString([]byte(before + value + "after"))
				forms["base64 after "+before] = text
				forms["base64 in lines after "+before] = text[:19] + "\n" + text[19:38] + "\n" + text[38:]
			}
		}
		for form, text := range forms {
			if got := a.reveal([]byte(text)); !strings.HasPrefix(got, name) {
				t.Errorf("%s as %s: got %q", name, form, got)
			}
		}
	}
	for _, text := range []string{"", "[redacted]", "redteam Xy", strings.Repeat("0123456789abcdef", 100)} {
		if got := a.reveal([]byte(text)); got != "" {
			t.Errorf("%q shows %s", text, got)
		}
	}
}
