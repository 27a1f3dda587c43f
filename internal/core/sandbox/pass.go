package sandbox

import (
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ProofTTL is how long the proof of a grant allows an executor to act for the grant's key in an
// environment in which the executor has no sandbox.
const ProofTTL = time.Hour

// Pass is the part of a Grant that an executor shows to a gateway. It names the grant without its
// secrets, and proves that a gateway gave the grant to this executor.
type Pass struct {
	Tenant      tenant.ID
	Environment string    // id
	Key         string    // id
	Proof       []byte    // nil in a process that is gateway and executor
	ProofUntil  time.Time // in whole seconds
}

// Pass returns g's pass.
func (g *Grant) Pass() Pass {
	return Pass{Tenant: g.Tenant, Environment: g.Environment, Key: g.Key, Proof: g.Proof, ProofUntil: g.ProofUntil}
}

// ProvenTo returns a copy of g with a proof for one executor, valid until a time. The proof is
// worthless for other executors.
func (g *Grant) ProvenTo(executor string, s proof.Signer, until time.Time) *Grant {
	proven := *g
	proven.ProofUntil = until.UTC().Truncate(time.Second)
	p := proven.Pass()
	proven.Proof = proof.Of(s, passPurpose, p.parts(executor)...)
	return &proven
}

const passPurpose = "sandbox grant"

// Genuine reports whether a gateway gave the proof to an executor, maybe for a time that has passed.
func (p *Pass) Genuine(executor string, s proof.Signer) bool {
	return proof.Check(s, p.Proof, passPurpose, p.parts(executor)...)
}

func (p *Pass) parts(executor string) []string {
	return []string{executor, p.Tenant, p.Environment, p.Key, strconv.FormatInt(p.ProofUntil.Unix(), 10)}
}
