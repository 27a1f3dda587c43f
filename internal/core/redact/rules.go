package redact

// Rule is a token shape that can be switched off by its name.
type Rule struct {
	Name string
	Doc  string
}

// Rules lists every rule.
var Rules = []Rule{
	{"bearer", "text after \"Bearer\", or \"Authorization:\" and a scheme, in headers and dumps of them"},
	{"jwt", "JSON Web Tokens: three or more base64url parts, of which the first begins with {\""},
	{"aws-access-key", "AWS access key ids (AKIA…, ASIA…)"},
	{"aws-secret-key", "AWS secret keys and session tokens after their usual names"},
	{"github", "GitHub tokens (ghp_, gho_, ghu_, ghs_, ghr_, github_pat_)"},
	{"gitlab", "GitLab tokens (glpat- and similar prefixes)"},
	{"slack", "Slack tokens (xoxb-, xoxp-, xapp- and others)"},
	{"google-api-key", "Google API keys (AIza…) and OAuth access tokens (ya29.…)"},
	{"private-key", "PEM blocks of private keys, also as JSON strings"},
	{"azure-storage", "AccountKey and SharedAccessKey of Azure connection strings"},
	{"npm", "npm tokens (npm_…)"},
	{"pypi", "PyPI tokens (pypi-…)"},
	{"openai", "OpenAI keys and others that begin with sk-"},
	{"anthropic", "Anthropic keys (sk-ant-…)"},
	{"stripe", "Stripe keys (sk_live_, rk_live_, sk_test_, whsec_ and others)"},
	{"atoll", "Atoll's own keys, tokens and tickets (sk-atoll-…, tk-atoll-…, tkt-atoll-…)"},
}

// kind says how a spec goes on after its literal.
type kind uint8

const (
	run kind = iota // separators, then min or more bytes of a class
	jwt
	pem
)

// spec is how a rule, or a part of one, is recognised: one of its literals, then
// what its machine accepts. At most 32, for they are counted in a bit set.
type spec struct {
	rule  string
	kind  kind
	lits  []string // of window bytes or more
	keep  bool     // the literal is context and stays
	seps  *class   // may stand between literal and body, at most maxSeps
	must  bool     // at least one separator
	class *class   // of the body
	min   int      // length of the body
	digit bool     // the first min bytes, or later ones, have a digit; twice min do without
	word  bool     // the literal must not follow a letter or digit
	ahead bool     // the literals end with the first byte of the body
}

const maxSeps = 16

var (
	alnum   = classOf("a-zA-Z0-9")
	upper   = classOf("A-Z0-9")
	word    = classOf("a-zA-Z0-9_")
	dashed  = classOf("a-zA-Z0-9_-")
	dotted  = classOf("a-zA-Z0-9_.-")
	base64s = classOf("a-zA-Z0-9/+=")
	token68 = classOf("a-zA-Z0-9._~+/=|-")
	value   = classOf("a-zA-Z0-9._~+/=|:%!*@^&-") // of headers, up to a quote, a comma or the like
	blank   = classOf(" ")
	assign  = classOf(" \t\"'`:=>,\\")
)

var specs = []spec{
	{rule: "bearer", lits: authorization(), keep: true, seps: blank, class: value, min: 4},
	{rule: "bearer", lits: []string{"Bearer ", "bearer ", "BEARER "}, keep: true, seps: blank, class: token68, min: 16, digit: true},
	{rule: "jwt", kind: jwt, lits: before("eyJ", dashed), ahead: true, class: dashed},
	{rule: "aws-access-key", lits: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, class: upper, min: 16, word: true},
	{rule: "aws-secret-key", lits: []string{"ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey", "ecret-access-key"}, keep: true, seps: assign, must: true, class: base64s, min: 40},
	{rule: "aws-secret-key", lits: []string{"ession_token", "ESSION_TOKEN", "essionToken", "ecurity-token", "ecurity-Token"}, keep: true, seps: assign, must: true, class: base64s, min: 100},
	{rule: "github", lits: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, class: alnum, min: 36},
	{rule: "github", lits: []string{"github_pat_"}, class: word, min: 22},
	{rule: "gitlab", lits: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-", "glft-", "glimt-", "glagent-", "gloas-"}, class: dotted, min: 20},
	{rule: "slack", lits: []string{"xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xox", "xoxc-", "xoxd-", "xapp-"}, class: classOf("a-zA-Z0-9%+/.-"), min: 10, digit: true},
	{rule: "google-api-key", lits: []string{"AIza"}, class: dashed, min: 35},
	{rule: "google-api-key", lits: []string{"ya29."}, class: dotted, min: 20},
	{rule: "private-key", kind: pem, lits: []string{"-----BEGIN "}},
	{rule: "azure-storage", lits: []string{"AccountKey=", "accountkey=", "SharedAccessKey=", "sharedaccesskey="}, keep: true, class: base64s, min: 40},
	{rule: "npm", lits: []string{"npm_"}, class: alnum, min: 36},
	{rule: "pypi", lits: []string{"pypi-A"}, class: dashed, min: 50},
	{rule: "openai", lits: before("sk-", alnum), ahead: true, class: alnum, min: 20, digit: true, word: true},
	{rule: "openai", lits: []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-None-"}, class: dashed, min: 20},
	{rule: "anthropic", lits: []string{"sk-ant-"}, class: dashed, min: 16},
	{rule: "stripe", lits: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"}, class: classOf("a-zA-Z0-9+/="), min: 16},
	{rule: "atoll", lits: []string{"sk-atoll-", "tk-atoll-", "tkt-atoll-"}, class: dashed, min: 16},
}

// authorization returns the ways in which the header is written before its
// value in dumps, JSON, and source text.
func authorization() (lits []string) {
	for _, name := range []string{"uthorization", "UTHORIZATION"} {
		for _, sep := range []string{":", ": ", "\":\"", "\": \"", "':'", "': '", "\\\":\\\"", "\\\": \\\"", "=", "=\"", "', '", "\", \""} {
			for _, scheme := range []string{"Bearer ", "bearer ", "Basic ", "basic ", "token ", "Token "} {
				lits = append(lits, name+sep+scheme)
			}
		}
	}
	return lits
}

// before returns a literal, too short for the scanner, with each byte that may
// follow it.
func before(lit string, c *class) (lits []string) {
	for b, in := range c {
		if in {
			lits = append(lits, lit+string(rune(b)))
		}
	}
	return lits
}

// class is a set of bytes.
type class [256]bool

// classOf reads a set as in a regular expression's brackets: a-z is a range, a
// dash at the end is itself.
func classOf(s string) *class {
	var c class
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' {
			for b := int(s[i]); b <= int(s[i+2]); b++ {
				c[b] = true
			}
			i += 2
			continue
		}
		c[s[i]] = true
	}
	return &c
}
