package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/redact"
)

func set(t testing.TB, c redact.Config) *redact.Set {
	t.Helper()
	s, err := redact.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// long returns n letters and digits without a pattern that any rule knows.
func long(n int) string {
	const part = "q7Z2m9X4w8"
	return strings.Repeat(part, n/len(part)+1)[:n]
}

func TestTokens(t *testing.T) {
	all := set(t, redact.Config{})
	jwt := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pem := "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIEow" + long(60) + "\n" + long(64) + "\n-----END RSA PRIVATE KEY-----"
	for _, c := range []struct{ rule, in, want string }{
		{"bearer", "Authorization: Bearer abcd\n", "Authorization: Bearer [redacted:bearer]\n"},
		{"bearer", "{'Authorization': 'Bearer " + long(8) + "'}", "{'Authorization': 'Bearer [redacted:bearer]'}"},
		{"bearer", `{"authorization":"Basic dXNlcjpwYXNz"}`, `{"authorization":"Basic [redacted:bearer]"}`},
		{"bearer", "Authorization: Bearer 1|abc def", "Authorization: Bearer [redacted:bearer] def"},
		{"bearer", "curl -H 'bearer  " + long(16) + "' x", "curl -H 'bearer  [redacted:bearer]' x"},
		{"jwt", "t=" + jwt + " x", "t=[redacted:jwt] x"},
		{"jwt", strings.TrimSuffix(jwt, "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U") + "\n", "[redacted:jwt]\n"},
		{"aws-access-key", "id AKIAIOSFODNN7EXAMPLE.", "id [redacted:aws-access-key]."},
		{"aws-secret-key", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n", "aws_secret_access_key = [redacted:aws-secret-key]\n"},
		{"aws-secret-key", `{"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}`, `{"SecretAccessKey": "[redacted:aws-secret-key]"}`},
		{"aws-secret-key", `SecretAccessKeySecretAccessKey="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"`, `SecretAccessKeySecretAccessKey="[redacted:aws-secret-key]"`},
		{"aws-secret-key", "AWS_SESSION_TOKEN=" + long(300) + "==\n", "AWS_SESSION_TOKEN=[redacted:aws-secret-key]\n"},
		{"github", "ghp_" + long(36), "[redacted:github]"},
		{"github", "xghs_ghs_" + long(36) + "-", "xghs_[redacted:github]-"},
		{"github", "github_pat_11ABCDEFG0" + long(60), "[redacted:github]"},
		{"gitlab", "glpat-" + long(20) + "\n", "[redacted:gitlab]\n"},
		{"slack", "xoxb-123456789012-" + long(24), "[redacted:slack]"},
		{"google-api-key", "AIzaSy" + long(33) + "&", "[redacted:google-api-key]&"},
		{"google-api-key", "ya29.a0" + long(33) + "\n", "[redacted:google-api-key]\n"},
		{"private-key", "a\n" + pem + "\nb", "a\n[redacted:private-key]\nb"},
		{"private-key", `{"private_key": "` + strings.ReplaceAll(pem, "\n", `\n`) + `\n"}`, `{"private_key": "[redacted:private-key]\n"}`},
		{"private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n" + long(70) + "\n------END PGP PRIVATE KEY BLOCK-----x", "[redacted:private-key]x"},
		{"azure-storage", "AccountName=a;AccountKey=" + long(86) + "==;EndpointSuffix=x", "AccountName=a;AccountKey=[redacted:azure-storage];EndpointSuffix=x"},
		{"npm", "//registry/:_authToken=npm_" + long(36), "//registry/:_authToken=[redacted:npm]"},
		{"pypi", "pypi-AgEIcHlwaS5vcmc" + long(80), "[redacted:pypi]"},
		{"openai", "OPENAI_API_KEY=sk-" + long(48), "OPENAI_API_KEY=[redacted:openai]"},
		{"openai", `"a\nsk-` + long(20) + `"`, `"a\n[redacted:openai]"`},
		{"openai", "sk-proj-" + long(40) + "-_" + long(40) + "\n", "[redacted:openai]\n"},
		{"anthropic", "sk-ant-api03-" + long(90) + "AA\n", "[redacted:anthropic]\n"},
		{"stripe", "sk_live_" + long(24) + ",", "[redacted:stripe],"},
		{"atoll", "sk-atoll-" + long(32) + "\n", "[redacted:atoll]\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := string(all.Bytes([]byte(c.in))); got != c.want {
				t.Errorf("%s\ngave %s\nwant %s", c.in, got, c.want)
			}
			off, err := redact.Except([]string{c.rule})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(set(t, redact.Config{Rules: off}).Bytes([]byte(c.in))); strings.Contains(got, "[redacted:"+c.rule+"]") {
				t.Errorf("with the rule off %s gave %s", c.in, got)
			}
		})
	}
}

func TestOrdinaryText(t *testing.T) {
	all := set(t, redact.Config{})
	for _, in := range []string{
		"Bearer authentication is required, see Authorization: Bearer <token>\n",
		"risk-management disk-by-id-0123456789abcdefabcdef task-0123456789abcdef01234567\n",
		"<div class=\"sk-toggleable__content sk-container-id-1\">\n",
		"-----BEGIN CERTIFICATE-----\n" + long(64) + "\n-----END CERTIFICATE-----\n",
		"----------------------------------------\n| a | b |\n",
		"eyJhIjoxfQ== eyJ.eyJ.eyJ eyJhbGciOiJIUzI1NiJ9.short\n",
		"AKIA is a prefix; AccountKey=short; npm_config_registry=x; glpat- xoxb-none\n",
		"aws_secret_access_key is not set\n",
		strings.Repeat("the quick brown fox jumps over the lazy dog, it eats grass\n", 100),
		"\x00\xff\xfe\x80 binary \r\n",
	} {
		if got := string(all.Bytes([]byte(in))); got != in {
			t.Errorf("%q\ngave %q", in, got)
		}
	}
}

func TestForms(t *testing.T) {
	for _, secret := range []string{"hunter2/+&=", "pässwörd 😀 <x>\"\\y", "ab~!*'()c", "  padded value\n", long(56), "line one of this secret\nline two of this secret\n", "\x01\x02\xff\xfe\x00\x7f"} {
		s := set(t, redact.Config{Secrets: []string{secret}, Rules: []string{}})
		want := func(form, text, expect string) {
			t.Helper()
			if got := string(s.Bytes([]byte(text))); got != expect {
				t.Errorf("%q as %s: %q\ngave %q\nwant %q", secret, form, text, got, expect)
			}
		}
		v := strings.TrimSpace(secret)
		want("itself", "a"+v+"b", "a[redacted]b")
		want("itself, twice", v+v, "[redacted][redacted]")
		want("HTML", "<p>"+html.EscapeString(v)+"</p>", "<p>[redacted]</p>")
		want("quotes", "'"+strings.ReplaceAll(v, "'", `'\''`)+"'", "'[redacted]'")
		want("hex", hex.EncodeToString([]byte(v)), "[redacted]")
		want("HEX", strings.ToUpper(hex.EncodeToString([]byte(v))), "[redacted]")
		for _, e := range []string{url.QueryEscape(v), url.PathEscape(v), strings.ReplaceAll(url.QueryEscape(v), "+", "%20")} {
			want("percent", "?"+e+"&", "?[redacted]&")
		}
		for _, html := range []bool{true, false} {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(html)
			if strings.ToValidUTF8(v, "") == v {
				if err := e.Encode(v); err != nil {
					t.Fatal(err)
				}
				want("JSON", b.String(), "\"[redacted]\"\n")
			}
		}
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			for lead := range 4 {
				text := enc.EncodeToString([]byte("xyz"[:lead] + v + "tail"))
				got := string(s.Bytes([]byte(text)))
				head, tail, found := strings.Cut(got, "[redacted]")
				if !found || strings.Contains(tail, "[") || len(head) > 4 || len(tail) > 8 {
					t.Errorf("%q in base64 after %d bytes: %s gave %s", secret, lead, text, got)
				}
			}
		}
	}
}

func TestLinesOfSecrets(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcwggSjAgEAAo\n-----END PRIVATE KEY-----\n"
	s := set(t, redact.Config{Secrets: []string{key}, Rules: []string{}})
	in := strings.ReplaceAll("  key: |\n"+key, "\n", "\r\n    ")
	want := "  key: |\r\n    -----BEGIN PRIVATE KEY-----\r\n    [redacted]\r\n    [redacted]\r\n    -----END PRIVATE KEY-----\r\n    "
	if got := string(s.Bytes([]byte(in))); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWrapped(t *testing.T) {
	secret := long(100)
	s := set(t, redact.Config{Secrets: []string{secret}, Rules: []string{}})
	wrap := func(text, end string, width int) string {
		var b strings.Builder
		for ; len(text) > width; text = text[width:] {
			b.WriteString(text[:width] + end)
		}
		return b.String() + text + end
	}
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`} {
		for lead := range 3 {
			text := base64.StdEncoding.EncodeToString([]byte("xy"[:lead] + secret))
			got := string(s.Bytes([]byte(wrap(text, end, 76))))
			if head, tail, found := strings.Cut(got, "[redacted]"); !found || len(head) > 4 || len(tail) > 4+len(end) {
				t.Errorf("base64 after %d bytes with %q gave %q", lead, end, got)
			}
		}
		if got := string(s.Bytes([]byte(wrap(hex.EncodeToString([]byte(secret)), end, 60)))); got != "[redacted]"+end {
			t.Errorf("hex with %q gave %q", end, got)
		}
	}
	plain := wrap(base64.StdEncoding.EncodeToString([]byte(secret))[:100], "\n", 40)
	if got := string(s.Bytes([]byte(plain))); got != plain {
		t.Errorf("the beginning alone gave %q", got)
	}
}

// Wherever the first line ends within a secret, at most the three characters before the
// end, or around it, stay.
func TestWrappedEarly(t *testing.T) {
	secrets := []string{long(100), long(20), "s3cr3t/+val"}
	for _, secret := range secrets {
		s := set(t, redact.Config{Secrets: []string{secret}, Rules: []string{}})
		for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`} {
			for before := range 24 {
				text := strings.Repeat("Z", 24) // a line is full after so many characters of the secret
				for name, encode := range map[string]func(string) string{
					"base64": func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
					"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
				} {
					encoded := encode(secret)
					if before >= len(encoded) {
						continue
					}
					in := text[before:] + encoded[:before]
					width := len(in)
					for rest := encoded[before:]; rest != ""; rest = rest[min(width, len(rest)):] {
						in += end + rest[:min(width, len(rest))]
					}
					out := string(s.Bytes([]byte(in + end)))
					left := strings.NewReplacer("Z", "", end, "", redact.Marker, "").Replace(out)
					if !strings.Contains(out, redact.Marker) || len(left) > 4+3 { // 4: of base64's last group
						t.Errorf("%s of %d bytes, %d characters before %q: %q", name, len(secret), before, end, out)
					}
				}
			}
		}
	}
}

// What Python makes of secrets, as it wrote it (Python 3.13).
func TestPythonQuotes(t *testing.T) {
	for _, c := range []struct{ secret, printed string }{
		{`it's <"mine">&co`, `it&#x27;s &lt;&quot;mine&quot;&gt;&amp;co`}, // html.escape
		{`it's <"mine">&co`, `it's &lt;"mine"&gt;&amp;co`},                // html.escape(quote=False)
		{`it's <"mine">&co`, `it&#39;s &lt;&quot;mine&quot;&gt;&amp;co`},  // JavaScript
		{`it's <"mine">&co`, `it&apos;s &lt;&quot;mine&quot;&gt;&amp;co`}, // XML
		{`it's a secret`, `'it'"'"'s a secret'`},                          // shlex.quote
		{`it's a secret`, `"it's a secret"`},                              // repr
		{`it's "a" secret`, `'it\'s "a" secret'`},
		{"back\\slash\x1b\x7f\tsecret", `'back\\slash\x1b\x7f\tsecret'`},
		{"geheim\u00e4\u00a0\u200b\U0001f511\U000e0001", `'geheim` + "\u00e4" + `\xa0\u200b` + "\U0001f511" + `\U000e0001'`},
		{"geheim\u00e4\u00a0\u200b\U0001f511", `'geheim\xe4\xa0\u200b\U0001f511'`}, // ascii
		{"geheim\u00e4\U0001f511", `b'geheim\xc3\xa4\xf0\x9f\x94\x91'`},            // repr of bytes
		{"it's \"geheim\"\u00e4", `b'it\'s "geheim"\xc3\xa4'`},                     // of bytes with both quotes
		{"geheim\xff\xfeim", `'geheim\udcff\udcfeim'`},                             // of os.environ
	} {
		s := set(t, redact.Config{Secrets: []string{c.secret}, Rules: []string{}})
		got := string(s.Bytes([]byte("x = " + c.printed + ".")))
		body := strings.Trim(strings.TrimPrefix(c.printed, "b'"), `'"`)
		if want := "x = " + strings.Replace(c.printed, body, redact.Marker, 1) + "."; got != want {
			t.Errorf("%s: got %s, want %s", c.printed, got, want)
		}
	}
}

func TestOverlaps(t *testing.T) {
	s := set(t, redact.Config{Secrets: []string{"abcdef", "bcdefghi", "cdefgh", "abcdefghij", "sk-atoll-", "the tail"}})
	for in, want := range map[string]string{
		"xabcdefx":                            "x[redacted]x",
		"abcdefghi":                           "[redacted]",
		"abcdefghix":                          "[redacted]x",
		"abcdefghij":                          "[redacted]",
		"abcdefabcdef":                        "[redacted][redacted]",
		"abcdefgh":                            "[redacted]",
		"sk-atoll-" + long(20) + "the tail x": "[redacted] x",
		"sk-atoll-" + long(20) + "the tai x":  "[redacted] tai x",
		"sk-atoll- the tail":                  "[redacted] [redacted]",
	} {
		if got := string(s.Bytes([]byte(in))); got != want {
			t.Errorf("%s gave %s, want %s", in, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		config redact.Config
		says   string
	}{
		{redact.Config{Secrets: []string{"long enough", " abc\n"}}, "secret 2 of 2 has 3 bytes"},
		{redact.Config{Secrets: []string{strings.Repeat("x", redact.MaxSecret+1)}}, "at most"},
		{redact.Config{Secrets: []string{long(8 << 10), long(8 << 10), long(8 << 10), long(8 << 10), "secret"}}, "together"},
		{redact.Config{Rules: []string{"jwt", "nonsense"}}, `unknown redaction rule "nonsense"`},
	} {
		_, err := redact.New(c.config)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want one that says %q", err, c.says)
		}
	}
	if _, err := redact.Except([]string{"nonsense"}); err == nil {
		t.Error("an unknown rule could be switched off")
	}
}

// Every rule has a marker that fits, and at least one token that it finds.
func TestRules(t *testing.T) {
	for _, r := range redact.Rules {
		if n := len("[redacted:" + r.Name + "]"); n > redact.MaxMarker {
			t.Errorf("the marker of %s has %d bytes", r.Name, n)
		}
		if r.Doc == "" {
			t.Errorf("%s says nothing", r.Name)
		}
	}
}

// The document that operators read lists every rule.
func TestRulesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/redaction.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range redact.Rules {
		if row := "| `" + r.Name + "` | " + r.Doc + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/reference/redaction.md lacks the row\n%s", row)
		}
	}
}

// Most streams have no secrets and all rules, named or not; they share a Set.
func TestSharedSet(t *testing.T) {
	names, err := redact.Except(nil)
	if err != nil {
		t.Fatal(err)
	}
	if set(t, redact.Config{}) != set(t, redact.Config{Rules: names}) {
		t.Error("the set of all rules is made more than once")
	}
	if s := set(t, redact.Config{Rules: []string{}}); string(s.Bytes([]byte("ghp_"+long(36)))) != "ghp_"+long(36) {
		t.Error("a set of nothing covers something")
	}
}
