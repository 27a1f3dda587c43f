package preview

import (
	"strings"
	"testing"
)

const someLabel = "8000-0123456789abcdef-abcdefghijklmnopqrstuvwx23"

func TestParseBase(t *testing.T) {
	for text, want := range map[string]string{
		"http://*.localhost:8080":                        "http://" + someLabel + ".localhost:8080/",
		"https://*.Preview.example.com":                  "https://" + someLabel + ".preview.example.com/",
		"https://*.preview.example.com/":                 "https://" + someLabel + ".preview.example.com/",
		"http://*.p-1.example.com:80":                    "http://" + someLabel + ".p-1.example.com:80/",
		"https://preview.example.com":                    "",
		"https://*.example.com/path":                     "",
		"https://*.example.com?x":                        "",
		"https://u@*.example.com":                        "",
		"ftp://*.example.com":                            "",
		"https://a.*.example.com":                        "",
		"https://*.*.example.com":                        "",
		"https://*.":                                     "",
		"https://*.example.com:0":                        "",
		"https://*.example.com:99999":                    "",
		"*.example.com":                                  "",
		"https://*." + strings.Repeat("a.", 110) + "com": "",
	} {
		b, err := ParseBase(text)
		if got := b.URL(someLabel); want != "" && (err != nil || got != want) || want == "" && err == nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestLabel(t *testing.T) {
	local, err := ParseBase("http://*.localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	wide, err := ParseBase("https://*.preview.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		base  Base
		host  string
		label string
		ok    bool
	}{
		{local, someLabel + ".localhost:8080", someLabel, true},
		{local, strings.ToUpper(someLabel) + ".LOCALHOST.:1", someLabel, true},
		{local, someLabel + ".localhost", someLabel, true},
		{local, "x.localhost:8080", "", true},
		{local, "x." + someLabel + ".localhost", "", true},
		{local, "0" + someLabel + ".localhost", "", true},
		{local, someLabel + "a.localhost", "", true},
		{local, ".localhost", "", true},
		{local, "localhost:8080", "", false},
		{local, "127.0.0.1:8080", "", false},
		{local, "[::1]:8080", "", false},
		{local, "[::1]", "", false},
		{local, "notlocalhost", "", false},
		{local, someLabel + ".example.com", "", false},
		{local, "", "", false},
		{wide, "preview.example.com", "", true},
		{wide, someLabel + ".preview.example.com:443", someLabel, true},
		{wide, "example.com", "", false},
		{wide, someLabel + ".localhost", "", false},
	} {
		if label, ok := test.base.Label(test.host); label != test.label || ok != test.ok {
			t.Errorf("%s: %q, %v", test.host, label, ok)
		}
	}
}

// FuzzLabel checks that only labels that were made are found, whichever host a client
// claims, and that a label's own URL leads back to it.
func FuzzLabel(f *testing.F) {
	base, err := ParseBase("http://*.localhost:8080")
	if err != nil {
		f.Fatal(err)
	}
	for _, host := range []string{someLabel + ".localhost:8080", "localhost", "x.localhost", "[::1]:80", "a:b:c.localhost", "..localhost."} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		label, ok := base.Label(host)
		if label == "" {
			return
		}
		if !ok || len(label) > maxLabel || !labelPattern.MatchString(label) && !everyPattern.MatchString(label) {
			t.Fatalf("%q: %q", host, label)
		}
		back := strings.TrimSuffix(strings.TrimPrefix(base.URL(label), "http://"), "/")
		if again, ok := base.Label(back); !ok || again != label {
			t.Fatalf("%q: %q leads to %q", host, back, again)
		}
	})
}
