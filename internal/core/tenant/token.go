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

// TokenPrefix begins every token that Atoll makes.
const TokenPrefix = "tk-atoll-"

const (
	tokenDigits = 40 // hexadecimal, after the prefix
	tokenID     = "tok_"
	keyID       = "key_"
)

// TokenScopes are those that a token can have.
var TokenScopes = []Scope{ScopeExecute, ScopeRead, ScopeSandboxes, ScopeTools}

// Token is what a key makes for a caller that must not have the key, such as a web page. It
// can do less than the key, for a short time. The token itself is shown once.
type Token struct {
	ID     string // "tok_", the digits of its key's id, "_" and 16 hexadecimal digits
	Tenant ID
	Key    string // id of the key that made it
	Hash   [32]byte
	Scopes []Scope
	// Operations are the ids of those that it is for; none means all that are open to tokens.
	Operations []string

	// Rights are what the token may do in a session beside sending messages; none by default.
	Rights []TokenRight

	Session string       // id of the one session of an agent that it reaches; "" for any
	Sandbox TokenSandbox // the one named sandbox that it reaches
	Origins []string     // web origins that a request must come from; none means any or none

	MaxCost       usage.Money // of what is charged in money to it; 0 for no bound
	Cost          usage.Money
	MaxExecutions int64 // 0 for no bound
	Executions    int64

	CreatedAt, ExpiresAt time.Time
	RevokedAt            *time.Time
}

// TokenRight is something that a token may do only if it was made with it, because it decides
// what agents and their programs may do.
type TokenRight string

// Rights of tokens.
const (
	RightConfirm  TokenRight = "confirm"  // approve or deny tool calls that wait
	RightOutcomes TokenRight = "outcomes" // define outcomes; never with a check, which runs a command
)

// TokenRights are all rights.
var TokenRights = []TokenRight{RightConfirm, RightOutcomes}

// MayConfirm returns a Forbidden fault unless the caller may approve or deny tool calls. Keys may.
func (p *Principal) MayConfirm() error {
	if p.Token == nil || slices.Contains(p.Token.Rights, RightConfirm) {
		return nil
	}
	return fault.New(fault.Forbidden, "this token cannot approve or deny tool calls; create it with the right %q, or answer with an API key", RightConfirm)
}

// MayDefineOutcome returns a Forbidden fault unless the caller may define an outcome. check says
// that the outcome has a command, which no token may start.
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

// TokenSandbox names a sandbox that a token is bound to; the zero value is any.
type TokenSandbox struct{ ID, Session, Name string }

// Is reports whether a request that names a sandbox by its id, or by its name in a session,
// means this one.
func (s TokenSandbox) Is(session, nameOrID string) bool {
	return nameOrID == s.ID || nameOrID == s.Name && session == s.Session
}

// Bound reports whether the token reaches one session or one sandbox alone.
func (t *Token) Bound() bool { return t.Session != "" || t.Sandbox.ID != "" }

// IsToken reports whether the id of a caller is that of a token.
func IsToken(id string) bool { return strings.HasPrefix(id, tokenID) }

// KeyOf returns the id of the key that made a token, by the token's id. Every other id is
// returned as it is.
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

// NewToken returns a random token with 160 bits.
func NewToken() string {
	var b [tokenDigits / 2]byte
	rand.Read(b[:])
	return TokenPrefix + hex.EncodeToString(b[:])
}

// ParseToken returns what is stored of a token; ok is false for what cannot be one.
func ParseToken(text string) (hash [32]byte, ok bool) {
	digits, ok := strings.CutPrefix(text, TokenPrefix)
	if !ok || len(digits) != tokenDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return hash, false
	}
	return HashKey(text), true
}

// Narrow makes p, who has the key that made t, the caller who has t: nothing is added, and
// what the key has lost is gone.
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

// KeyID is the id of the caller's key: for one who has a token, of the key that made it.
func (p *Principal) KeyID() string { return KeyOf(p.Key.ID) }

// maxOrigin is the longest origin in bytes.
const maxOrigin = 300

// CheckOrigin refuses what is not a web origin as browsers send it in the header Origin:
// scheme, host and, if it is not the scheme's, port.
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

// originHost reports whether a host is as browsers write it in an origin.
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

// clip keeps what is shown of a caller's text short.
func clip(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// DimensionTokenCost and DimensionTokenExecutions are what a token's bounds are called where
// one refuses a call.
const (
	DimensionTokenCost       = "token_cost"
	DimensionTokenExecutions = "token_executions"
)

// Spent is the refusal of a token that has used up its MaxCost.
func Spent(used, most usage.Money) error {
	return fault.Limit(DimensionTokenCost, time.Time{}, "the token is used up: %s of its max_cost of %s US dollars. Request a new token.", used, most)
}

// Reserved is the refusal of a token whose max_cost is held by answers under way.
func Reserved(left, most usage.Money) error {
	return fault.Limit(DimensionTokenCost, time.Time{}, "answers in progress have reserved the remaining max_cost of this token: %s of %s US dollars are left. Wait until they end, or create a token with a higher max_cost.", left, most)
}

// Executed is the refusal of a token that has used up its MaxExecutions.
func Executed(most int64) error {
	return fault.Limit(DimensionTokenExecutions, time.Time{}, "the token is used up: it allowed %d executions (max_executions). Request a new token.", most)
}
