package signed

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Purpose says what a token of a sandbox is for.
type Purpose string

// Purposes of tokens.
const (
	ForServices Purpose = "e2b-sandbox"
	// ForPorts is the purpose of tokens for the ports of a sandbox, which clients give to other programs.
	// They do not open the sandbox's own services; clients manage code contexts with them, and run no code.
	ForPorts Purpose = "e2b-traffic"
)

const maxToken = 4 << 10 // characters

// Claim is what a token of a sandbox allows.
type Claim struct {
	Sandbox runtime.ID `json:"s"`
	Tenant  tenant.ID  `json:"t"`
	Key     string     `json:"k"` // id
}

// Holders finds the keys that a sandbox can be used with; a sandbox.Store does.
type Holders interface {
	Holders(ctx context.Context, id runtime.ID) (tenant.ID, []string, error)
}

// Sandboxes makes and checks tokens of sandboxes. All fields are required.
type Sandboxes struct {
	Signer  Signer
	Keys    Keys
	Holders Holders
}

// Token returns a caller's token for a sandbox.
func (s *Sandboxes) Token(p *tenant.Principal, id runtime.ID, of Purpose) (string, error) {
	return sign(s.Signer, Claim{Sandbox: id, Tenant: p.Tenant.ID, Key: p.Key.ID}, string(of))
}

// Read reads a token that was made for a purpose.
func (s *Sandboxes) Read(token string, of Purpose) (c Claim, err error) {
	if token == "" {
		return c, fault.New(fault.Unauthorized, "missing access token: connect to the sandbox again, by its id, for one")
	}
	if !open(s.Signer, token, string(of), maxToken, &c) {
		return c, fault.New(fault.Unauthorized, "the access token is not valid: connect to the sandbox again, by its id, for another")
	}
	return c, nil
}

// Holder returns the holder of the key that a claim stands for.
func (s *Sandboxes) Holder(ctx context.Context, c Claim) (tenant.Principal, error) {
	return s.Keys.Holder(ctx, c.Tenant, c.Key)
}

// Admit rejects tokens that do not open the ports of a sandbox.
func (s *Sandboxes) Admit(ctx context.Context, token string, id runtime.ID) error {
	c, err := s.Read(token, ForPorts)
	if err == nil && c.Sandbox != id {
		err = fault.New(fault.Forbidden, "the token is for another sandbox")
	}
	if err == nil {
		_, err = s.Holder(ctx, c)
	}
	if fault.KindOf(err) == fault.Unauthorized {
		err = fault.Wrap(fault.Forbidden, err, "the token is not valid")
	}
	return err
}

// Signed is a file that a client has signed, with the token of one of the keys that the sandbox can be used
// with.
type Signed struct {
	Path, Operation, User string
	Until                 *string // Unix time; nil for any time
	Signature             string
}

// ErrSignature rejects a signature.
var ErrSignature = fault.New(fault.Unauthorized, "the signature is not valid: make the URL again")

// Verify returns what the signature of a file in a sandbox allows.
func (s *Sandboxes) Verify(ctx context.Context, id runtime.ID, of *Signed) (c Claim, err error) {
	until := ""
	if of.Until != nil {
		n, err := strconv.ParseInt(*of.Until, 10, 64)
		if err != nil {
			return c, ErrSignature
		}
		if time.Now().Unix() >= n {
			return c, fault.New(fault.Unauthorized, "the signature has expired: make the URL again")
		}
		until = ":" + *of.Until
	}
	owner, keys, err := s.Holders.Holders(ctx, id)
	if err != nil {
		return c, err
	}
	for _, key := range keys {
		c = Claim{Sandbox: id, Tenant: owner, Key: key}
		token, err := sign(s.Signer, c, string(ForServices))
		if err != nil {
			return Claim{}, err
		}
		sum := sha256.Sum256([]byte(of.Path + ":" + of.Operation + ":" + of.User + ":" + token + until))
		if subtle.ConstantTimeCompare([]byte(of.Signature), []byte("v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))) == 1 {
			return c, nil
		}
	}
	return Claim{}, ErrSignature
}
