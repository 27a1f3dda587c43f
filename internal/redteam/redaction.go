package redteam

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
)

// redactionCases print secrets in the forms that programs give them.
func redactionCases() []Case {
	same := "no form of a secret is in what the server answers"
	return []Case{
		{"redaction/plain", Critical, "prints secrets at once, byte by byte, in lines, and over both streams", same, printing(`
for s in secrets:
    print(s); print('a', s, 'b', file=sys.stderr, flush=True)
    for c in s: sys.stdout.write(c); sys.stdout.flush()
    print()
    for i, c in enumerate(s): os.write(1 + i % 2, c.encode())
    print('\n'.join('    ' + l for l in s.split('\n')))
`)},
		{"redaction/base64", Critical, "prints secrets in base64, wherever they begin in other data, also broken into lines", same, printing(`
import textwrap
for s in secrets:
    for before in b'', b'x', b'xy':
        for encode in base64.b64encode, base64.urlsafe_b64encode:
            text = encode(before + s.encode() + b'after').decode()
            print(text); print(text.rstrip('='))
            for width in 4, 16, 19, 60, 76: print('\n'.join(textwrap.wrap(text, width))); print('-')
`)},
		{"redaction/hex", Critical, "prints secrets in hexadecimal digits, small and capital, also broken into lines", same, printing(`
import textwrap
for s in secrets:
    text = s.encode().hex()
    print(text); print(text.upper())
    for width in 4, 30, 60: print('\n'.join(textwrap.wrap('00' + text, width))); print('-')
`)},
		{"redaction/quotes", Critical, "prints secrets as JSON, HTML, shell, URL and Python write them", same, printing(`
import html, json, shlex, urllib.parse
for s in secrets:
    for f in json.dumps, html.escape, shlex.quote, urllib.parse.quote, urllib.parse.quote_plus, repr, ascii: print(f(s))
    print(repr(s.encode())); print(json.dumps({'k': [s]})); print(urllib.parse.urlencode({'k': s}))
`)},
		{"redaction/errors", Critical, "ends with secrets in an exception, in its arguments and in a warning", same, printing(`
import warnings
for s in secrets: warnings.warn(s)
raise ValueError(secrets[0], {'key': secrets[1]})
`)},
		{"redaction/output-files", Critical, "gives back files with secrets, at the edges of blocks too", same, secretFiles},
		{"redaction/streams", Critical, "prints secrets into a stream of events, in pieces", same, secretStream},
		{"redaction/records", Critical, "looks for what it printed in the execution's record and stored output", same, secretRecords},
		{"redaction/processes", Critical, "prints secrets in a process of a named sandbox, and reads that again", same, secretProcess},
		{"redaction/contexts", Critical, "has an interpreter that stays return secrets as values, media types and errors", same, secretContext},
		{"redaction/file-names", High, "names files after secrets and lists them with glob", same, secretNames},
		{"redaction/token-shapes", High, "prints tokens that are no registered secrets: this server's own keys, a JSON Web Token, keys of clouds and forges", "each becomes a marker", tokenShapes},
		{"redaction/settings", Critical, "reads the environment, its events and its keys as an administrator", "no value of a secret is shown again", secretSettings},
	}
}

// The variables of envSecret, and what their values hold besides random digits: what
// each quoting changes.
var secretForms = map[string]string{
	"REDTEAM_SECRET_PLAIN":  "redteam%sXy",
	"REDTEAM_SECRET_QUOTES": `rt"<%s>'&a\b/c$ d+e`,
	"REDTEAM_SECRET_LINES":  "rt-%s-first-line\nsecond-line-%[1]s\nthird-%[1]s",
}

// makeSecrets makes the secrets of a run.
func makeSecrets() map[string]string {
	out := map[string]string{}
	for name, form := range secretForms {
		out[name] = fmt.Sprintf(form, token(12))
	}
	return out
}

const secretPrelude = `import base64, os, sys
secrets = [os.environ['REDTEAM_SECRET_' + n] for n in ('PLAIN', 'QUOTES', 'LINES')]
assert all(len(s) > 20 for s in secrets)
`

// theSecret makes the environment with secrets.
func (a *arena) theSecret(ctx context.Context) (caller, error) {
	return a.secret.get(ctx, func(ctx context.Context) (caller, error) {
		return a.room(ctx, attackerTenant, envSecret, map[string]any{"secrets": a.secrets})
	})
}

// theVault is the sandbox with secrets that cases share.
func (a *arena) theVault(ctx context.Context) (sandbox, error) {
	return a.vault.get(ctx, func(ctx context.Context) (sandbox, error) {
		c, err := a.theSecret(ctx)
		if err != nil {
			return sandbox{}, err
		}
		return a.create(ctx, c)
	})
}

var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// reveal says whether text has a secret in it, in any of the forms that redaction
// promises to find, and in which. It looks for the random digits, which no quoting
// changes, and for what surrounds them only where an encoding shifts bits.
func (a *arena) reveal(text []byte) (form string) {
	plain := string(text)
	solid := strings.Join(strings.Fields(plain), "")
	folded := strings.ToLower(solid)
	unescaped := percent.ReplaceAllStringFunc(plain, func(digits string) string {
		b, _ := hex.DecodeString(digits[1:]) // they are digits
		return string(b)
	})
	for name, value := range a.secrets {
		core := coreOf(name, value)
		switch {
		case strings.Contains(plain, core), strings.Contains(html.UnescapeString(plain), core), strings.Contains(unescaped, core):
			return name + " in clear"
		case strings.Contains(solid, core):
			return name + " broken into lines"
		case strings.Contains(folded, hex.EncodeToString([]byte(core))):
			return name + " in hexadecimal digits"
		}
		for shift := range 3 {
			for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				text := e.EncodeToString(append(bytes.Repeat([]byte{0}, shift), core...))
				// The characters that share bits with neighbours are left out.
				if strings.Contains(solid, text[(shift*8+5)/6:len(core)*8/6]) {
					return name + " in base64"
				}
			}
		}
	}
	return ""
}

// coreOf is the part of a secret that is random.
func coreOf(name, value string) string {
	before, _, _ := strings.Cut(secretForms[name], "%")
	return value[len(before) : len(before)+24]
}

// hidden reports an answer that shows a secret.
func (a *arena) hidden(what string, text []byte) error {
	if form := a.reveal(text); form != "" {
		return found("%s shows %s", what, form) // and not how it looks: evidence is not a secret's place
	}
	return nil
}

// printing runs a program that prints secrets, and looks at all of the answer. What it
// would show without redaction has markers.
func printing(code string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		c, err := a.theSecret(ctx)
		if err != nil {
			return err
		}
		e, err := a.execute(ctx, c, "python", secretPrelude+code, 20, nil)
		if err != nil {
			return err
		}
		return a.marked("the answer", e.Raw, e.Status)
	}
}

const marker = "[redacted"

// marked checks that an answer shows no secret, but that one was there to be shown.
func (a *arena) marked(what string, raw []byte, status int) error {
	if err := a.hidden(what, raw); err != nil {
		return err
	}
	if status != http.StatusOK || !bytes.Contains(raw, []byte(marker)) {
		return fmt.Errorf("%s shows nothing that was redacted: %d %.300s", what, status, raw)
	}
	return nil
}

func secretFiles(ctx context.Context, a *arena) error {
	c, err := a.theSecret(ctx)
	if err != nil {
		return err
	}
	const code = secretPrelude + `
open('plain.txt', 'w').write('\n'.join(secrets))
open('late.txt', 'w').write('x' * 65530 + secrets[0] + 'x' * 65530 + secrets[0])
open('b64.txt', 'wb').write(base64.b64encode('\n'.join(secrets).encode()))
`
	names := []string{"plain.txt", "late.txt", "b64.txt"}
	e, err := a.execute(ctx, c, "python", code, 20, map[string]any{"outputs": names})
	if err != nil {
		return err
	}
	if !e.Success {
		return fmt.Errorf("the program: %s", e)
	}
	for _, name := range names {
		got, err := c.do(ctx, http.MethodGet, "/v1/executions/"+e.Trace+"/file?path="+name, nil)
		if err != nil {
			return err
		}
		if err := a.marked("the file "+name, got.Body, got.Status); err != nil {
			return err
		}
	}
	return nil
}

func secretStream(ctx context.Context, a *arena) error {
	c, err := a.theSecret(ctx)
	if err != nil {
		return err
	}
	const code = secretPrelude + `
import time
for s in secrets:
    for i in range(0, len(s), 5): sys.stdout.write(s[i:i + 5]); sys.stdout.flush(); time.sleep(0.01)
    print()
`
	for _, media := range []string{"application/x-ndjson", "text/event-stream"} {
		got, err := c.do(ctx, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": code, "timeout": 20}, "Accept", media)
		if err != nil {
			return err
		}
		// An event's text may end anywhere: it is joined as its reader would.
		joined := joinEvents(got.Body)
		if err := a.hidden("the stream of "+media, got.Body); err != nil {
			return err
		}
		if err := a.marked("the stream of "+media, joined, got.Status); err != nil {
			return err
		}
	}
	return nil
}

func secretRecords(ctx context.Context, a *arena) error {
	c, err := a.theSecret(ctx)
	if err != nil {
		return err
	}
	e, err := a.execute(ctx, c, "python", secretPrelude+"print('\\n'.join(secrets)); print(secrets, file=sys.stderr)", 20, nil)
	if err != nil {
		return err
	}
	if !e.Success {
		return fmt.Errorf("the program: %s", e)
	}
	at := "/v1/executions/" + e.Trace
	for _, path := range []string{at, at + "/output?stream=stdout", at + "/output?stream=stderr"} {
		got, err := c.do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if err := a.marked("GET "+path, got.Body, got.Status); err != nil {
			return err
		}
	}
	got, err := a.admin.do(ctx, http.MethodGet, "/v1/admin/tenants/"+attackerTenant+"/audit?trace_id="+e.Trace, nil)
	if err != nil {
		return err
	}
	return a.hidden("the audit trail", got.Body)
}

func secretProcess(ctx context.Context, a *arena) error {
	s, err := a.theVault(ctx)
	if err != nil {
		return err
	}
	out, err := s.start(ctx, "python3", "-c", secretPrelude+"print('\\n'.join(secrets)); print(base64.b64encode(secrets[0].encode()).decode(), file=sys.stderr)")
	if err != nil {
		return err
	}
	return a.marked("a process", []byte(out.Stdout+out.Stderr), http.StatusOK)
}

func secretContext(ctx context.Context, a *arena) error {
	s, err := a.theVault(ctx)
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"context_id"`
	}
	if err := s.by.must(ctx, http.MethodPost, s.path("/contexts"), map[string]any{"language": "python"}, &made); err != nil {
		return err
	}
	for what, code := range map[string]string{
		"a value":      "secrets",
		"an error":     "raise ValueError(secrets[0])",
		"a media type": "class R:\n    def _repr_mimebundle_(self, **kw): return {'text/plain': 'x', 'text/html': '<b>' + secrets[0] + '</b>', 'text/' + secrets[0]: secrets[0]}\n    def _repr_html_(self): return '<b>' + secrets[0] + '</b>'\nprint(secrets[0])\nR()",
	} {
		got, err := s.by.do(ctx, http.MethodPost, s.path("/contexts/"+made.ID+"/run"), map[string]any{"code": secretPrelude + code, "timeout_ms": 20_000}, "Accept", "application/x-ndjson")
		if err != nil {
			return err
		}
		if err := a.marked(what+" of a context", got.Body, got.Status); err != nil {
			return err
		}
	}
	return gone(ctx, s.by, s.path("/contexts/"+made.ID))
}

func secretNames(ctx context.Context, a *arena) error {
	s, err := a.theVault(ctx)
	if err != nil {
		return err
	}
	if _, err := s.start(ctx, "sh", "-c", `mkdir -p /home/user/names && : > "/home/user/names/$REDTEAM_SECRET_PLAIN"`); err != nil {
		return err
	}
	c, err := a.key(ctx, attackerTenant, envSecret, "tools")
	if err != nil {
		return err
	}
	// Tools name a sandbox by its session; one without is of the session of its key.
	const session = "redteam-names"
	made := sandbox{by: s.by}
	if err := s.by.must(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "vault", "session": session}, &made); err != nil {
		return err
	}
	if _, err := made.start(ctx, "sh", "-c", `mkdir -p /home/user/names && : > "/home/user/names/$REDTEAM_SECRET_PLAIN"`); err != nil {
		return err
	}
	for _, cwd := range []string{"/home/user/names", "/home/user"} {
		got, err := c.do(ctx, http.MethodPost, "/v1/sessions/"+session+"/tools/glob", map[string]any{"sandbox": "vault", "pattern": "**/*", "cwd": cwd})
		if err != nil {
			return err
		}
		if err := a.marked("glob", got.Body, got.Status); err != nil {
			return err
		}
	}
	return gone(ctx, s.by, made.path(""))
}

func tokenShapes(ctx context.Context, a *arena) error {
	// Each is made in the program, so that this file has none.
	const code = `import base64
def b(s): return base64.urlsafe_b64encode(s).rstrip(b'=').decode()
n = '0123456789abcdefghij'
print('jwt', b(b'{"alg":"HS256","typ":"JWT"}') + '.' + b(b'{"sub":"1234567890","name":"redteam"}') + '.' + b(bytes(range(100, 132))))
print('github', 'gh' + 'p_' + 'Ab1' * 12)
print('atoll', 'sk-' + 'atoll-' + 'a1b2c3d4e5' * 4)
print('aws', 'AK' + 'IA' + 'IOSFODNN7ABCDEFG')
print('stripe', 'sk_' + 'live_' + 'Ab1C' * 6)
print('bearer', 'Authorization: Bearer ' + 'Zz9' * 12)
print('slack', 'xox' + 'b-123456789012-123456789012-' + 'AbCdEf123456789012345678')
print('done')
`
	e, err := a.execute(ctx, a.plain, "python", code, 20, nil)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(e.Stdout, "done\n") {
		return fmt.Errorf("the program: %s", e)
	}
	for line := range strings.Lines(e.Stdout) {
		if name := strings.Fields(line)[0]; name != "done" && !strings.Contains(line, marker) {
			return found("a token of the kind %s is shown", name)
		}
	}
	return nil
}

func secretSettings(ctx context.Context, a *arena) error {
	if _, err := a.theSecret(ctx); err != nil {
		return err
	}
	at := "/v1/admin/tenants/" + attackerTenant
	for _, path := range []string{"/environments", "/environments/" + envSecret, "/keys", "/policy-events"} {
		got, err := a.admin.do(ctx, http.MethodGet, at+path, nil)
		if err != nil {
			return err
		}
		if got.Status != http.StatusOK {
			return fmt.Errorf("GET %s: %s", at+path, got)
		}
		if err := a.hidden("GET "+at+path, got.Body); err != nil {
			return err
		}
	}
	return nil
}
