package tenant

import (
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// TokenPrefix starts every token.
const TokenPrefix = "tk-atoll-"

const (
	tokenDigits = 40 // hexadecimal, after the prefix
	tokenID     = "tok_"
	keyID       = "key_"
)

// TokenScopes lists the scopes that a token can have.
var TokenScopes = []Scope{ScopeExecute, ScopeRead, ScopeSandboxes, ScopeTools}

// Token is a short-lived credential that a key creates for a caller that must not hold the key,
// such as a web page. It can do less than the key. Atoll shows the token itself only once.
type Token struct {
	ID     string // "tok_", the digits of its key's id, "_" and 16 hexadecimal digits
	Tenant ID
	Key    string // id of the key that created it
	Hash   [32]byte
	Scopes []Scope
	// Operations are the ids of the allowed operations; empty for all that are open to tokens.
	Operations []string

	// Rights are what the token may do in a session in addition to sending messages; empty by
	// default.
	Rights []TokenRight

	Session string       // id of the only agent session that it reaches; "" for any
	Sandbox TokenSandbox // the only named sandbox that it reaches
	Origins []string     // allowed web origins of requests; empty for any or none

	MaxCost       usage.Money // limit of the money charged to it; 0 for unlimited
	Cost          usage.Money
	MaxExecutions int64 // 0 for unlimited
	Executions    int64

	CreatedAt, ExpiresAt time.Time
	RevokedAt            *time.Time
}

// TokenRight is a permission that a token has only if it was created with it, because it controls
// what agents and their programs may do.
type TokenRight string

// Rights of tokens.
const (
	RightConfirm  TokenRight = "confirm"  // approve or deny waiting tool calls
	RightOutcomes TokenRight = "outcomes" // define outcomes; never with a check, which runs a command
)

// TokenRights lists every right.
var TokenRights = []TokenRight{RightConfirm, RightOutcomes}

// MayConfirm returns a Forbidden fault unless the caller may approve or deny tool calls. Keys
// always may.
func (p *Principal) MayConfirm() error {
	if p.Token == nil || slices.Contains(p.Token.Rights, RightConfirm) {
		return nil
	}
	return fault.New(fault.Forbidden, "this token cannot approve or deny tool calls; create it with the right %q, or answer with an API key", RightConfirm)
}

// MayDefineOutcome returns a Forbidden fault unless the caller may define an outcome. check says
// that the outcome contains a command, which no token may start.
func (p *Principal) MayDefineOutcome(check bool) error {
	switch {
	case p.Token == nil:
		return nil
	case !slices.Contains(p.Token.Rights, RightOutcomes):
		return fault.New(fault.Forbidden, "this token cannot define outcomes; create it with the right %q, or send the event with an API key", RightOutcomes)
	case check:
		return fault.New(fault.Forbidden, "check runs a command, which a token must not define; define the outcome with an API key, or only with a rubric")
	}
	return nil
}

// TokenSandbox names the sandbox that a token is bound to; the zero value is any.
type TokenSandbox struct{ ID, Session, Name string }

// Is reports whether a session and a name, or an id, refer to this sandbox.
func (s TokenSandbox) Is(session, nameOrID string) bool {
	return nameOrID == s.ID || nameOrID == s.Name && session == s.Session
}

// Bound reports whether the token is limited to one session or one sandbox.
func (t *Token) Bound() bool { return t.Session != "" || t.Sandbox.ID != "" }

// IsToken reports whether a caller's id is a token id.
func IsToken(id string) bool { return strings.HasPrefix(id, tokenID) }

// KeyOf returns the id of the key that created a token, given the token's id. It returns other ids
// unchanged.
func KeyOf(id string) string {
	digits, ok := strings.CutPrefix(id, tokenID)
	if i := strings.LastIndexByte(digits, '_'); ok && i > 0 {
		return keyID + digits[:i]
	}
	return id
}

// NewTokenID returns an unguessable id for a token of a key.
func NewTokenID(key string) string {
	return tokenID + NewID(strings.TrimPrefix(key, keyID))
}

// NewToken returns a token with 160 random bits.
func NewToken() string {
	var b [tokenDigits / 2]byte
	rand.Read(b[:])
	return TokenPrefix + hex.EncodeToString(b[:])
}

// ParseToken returns the stored hash of a token; ok is false if the text is malformed.
func ParseToken(text string) (hash [32]byte, ok bool) {
	digits, ok := strings.CutPrefix(text, TokenPrefix)
	if !ok || len(digits) != tokenDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return hash, false
	}
	return HashKey(text), true
}

// Narrow turns p, the caller that holds the key of t, into the caller that holds t. It only removes
// permissions, so a scope that the key has lost is also lost for t.
func (p *Principal) Narrow(t *Token) {
	p.Token = t
	p.Key.ID, p.Key.Hash = t.ID, t.Hash
	p.Key.Scopes = slices.DeleteFunc(slices.Clone(p.Key.Scopes), func(s Scope) bool {
		return !slices.Contains(TokenScopes, s) || !slices.Contains(t.Scopes, s)
	})
	if at := t.ExpiresAt; p.Key.ExpiresAt == nil || at.Before(*p.Key.ExpiresAt) {
		p.Key.ExpiresAt = &at
	}
}

// KeyID returns the id of the caller's key. For a token it is the key that created the token.
func (p *Principal) KeyID() string { return KeyOf(p.Key.ID) }

// maxOrigin limits an origin, in bytes.
const maxOrigin = 300

// CheckOrigin returns an Invalid fault unless text is a web origin as browsers send it in the
// Origin header: scheme, host and, if it is not the scheme's default, port.
func CheckOrigin(text string) error {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return invalid("%q is not a web origin: write it like https://app.example.com", clip(text))
	}
	host, port := rest, ""
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		host, port = rest[:i], rest[i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return invalid("%q is not a web origin: its port must be a number from 1 to 65535", clip(text))
		}
	}
	switch {
	case len(text) > maxOrigin || !originHost(host):
		return invalid("%q is not a web origin: it must be a scheme and a lowercase host, as browsers send it, without a path", clip(text))
	case scheme == "http" && port == "80", scheme == "https" && port == "443":
		return invalid("%q: omit the port, because browsers omit the scheme's default port", clip(text))
	}
	return nil
}

// originHost reports whether host is written as browsers write it in an origin.
func originHost(host string) bool {
	if in, ok := strings.CutPrefix(host, "["); ok {
		in, ok = strings.CutSuffix(in, "]")
		addr, err := netip.ParseAddr(in)
		return ok && err == nil && addr.Is6() && addr.Zone() == "" && addr.String() == in
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return len(host) <= 253
}

// clip truncates a caller's text for an error.
func clip(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// DimensionTokenCost and DimensionTokenExecutions are the dimensions of a token's limits.
const (
	DimensionTokenCost       = "token_cost"
	DimensionTokenExecutions = "token_executions"
)

// Spent returns the fault for a token that has used up its MaxCost.
func Spent(used, most usage.Money) error {
	return fault.Limit(DimensionTokenCost, time.Time{}, "the token is used up: %s of its max_cost of %s US dollars. Request a new token.", used, most)
}

// Reserved returns the fault for a token whose remaining MaxCost is reserved by answers in
// progress.
func Reserved(left, most usage.Money) error {
	return fault.Limit(DimensionTokenCost, time.Time{}, "answers in progress have reserved the remaining max_cost of this token: %s of %s US dollars are left. Wait until they end, or create a token with a higher max_cost.", left, most)
}

// Executed returns the fault for a token that has used up its MaxExecutions.
func Executed(most int64) error {
	return fault.Limit(DimensionTokenExecutions, time.Time{}, "the token is used up: it allowed %d executions (max_executions). Request a new token.", most)
}
