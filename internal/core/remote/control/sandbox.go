// Package control declares the calls of executors to gateways. A gateway checks each call by the
// executor that sent it. It answers calls about sandboxes, snapshots and files of others as if
// those did not exist.
package control

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Calls about the records of the executor's sandboxes. See sandbox.Records. Executors report changes,
// charges and contacts by events instead; see sandbox.Event.
const (
	CreateSandbox       remote.Call[Placed, Created]                 = "sandbox.create"
	WakeSandbox         remote.Call[Placed, remote.None]             = "sandbox.wake"
	DeleteSandbox       remote.Call[runtime.ID, remote.None]         = "sandbox.delete"
	CheckBudget         remote.Call[tenant.ID, remote.None]          = "sandbox.budget"
	GetSandbox          remote.Call[Ref, *sandbox.Sandbox]           = "sandbox.get"
	ListSandboxes       remote.Call[remote.None, []*sandbox.Sandbox] = "sandbox.list"
	ListWithoutEnv      remote.Call[remote.None, []runtime.ID]       = "sandbox.without_environment"
	RenewGrant          remote.Call[sandbox.Pass, *sandbox.Grant]    = "sandbox.grant"
	BeginSnapshot       remote.Call[NewSnapshot, remote.None]        = "snapshot.begin"
	FinishSnapshot      remote.Call[Finished, Kept]                  = "snapshot.finish"
	AbandonSnapshot     remote.Call[sandbox.SnapshotID, remote.None] = "snapshot.abandon"
	AbandonAllSnapshots remote.Call[remote.None, remote.None]        = "snapshot.abandon_all"
	FindSnapshot        remote.Call[SnapshotRef, *sandbox.Snapshot]  = "snapshot.find"
	MarkGarbage         remote.Call[tenant.ID, remote.None]          = "snapshot.garbage"
	GetSnapshotKey      remote.Call[SnapshotKeyRequest, []byte]      = "snapshot.key"
)

// Placed is a sandbox with the pass of the grant for which the executor runs it.
type Placed struct {
	Pass    sandbox.Pass
	Sandbox sandbox.Sandbox
}

// Created is the answer to CreateSandbox. There is nil and At the time of creation if the gateway
// recorded the sandbox. Otherwise There is the sandbox that has its name. If that is another
// executor's, it has only ID, Tenant, Environment, Session, Name and Executor.
type Created struct {
	There *sandbox.Sandbox
	At    time.Time
}

// Ref names a sandbox.
type Ref struct {
	Tenant tenant.ID
	ID     runtime.ID
}

// NewSnapshot is a snapshot in progress with the pass of the grant for which the executor makes it.
type NewSnapshot struct {
	Pass     sandbox.Pass
	Snapshot sandbox.Snapshot
}

// Finished is a snapshot whose state is in the blob store.
type Finished struct {
	Tenant      tenant.ID
	Environment string
	ID          sandbox.SnapshotID
	Stored      sandbox.StoredCopy
	Detail      string
	Keep        time.Duration // 0 for ever
}

// Kept says how long a snapshot is kept.
type Kept struct {
	CreatedAt time.Time
	ExpiresAt *time.Time // nil for ever
}

// SnapshotRef names a snapshot, with the pass of the grant for which the executor reads it.
type SnapshotRef struct {
	Pass sandbox.Pass
	ID   sandbox.SnapshotID
}

// SnapshotKeyRequest asks for the key of a tenant's snapshots. An executor without a sandbox of the
// tenant needs the pass of a grant.
type SnapshotKeyRequest struct {
	Tenant tenant.ID
	Pass   sandbox.Pass
}
