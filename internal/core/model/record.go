package model

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Record is a model that callers can name.
type Record struct {
	ID   string // "mdl_" and 16 hexadecimal digits
	Name string // unique in the installation

	Provider Provider
	Upstream string // what the provider calls it
	BaseURL  string // of the provider's API
	Key      string // for the provider; stored encrypted, never shown; "" for none
	Spec

	// Which tenants may use it: all, or those listed and those of the plans listed. A declared
	// model has names among the tenants.
	AllTenants bool
	Tenants    []tenant.ID
	Plans      []string

	Source     string // path of the file that declares it; "" for one of the Store
	OwnKey     string // id of the OwnKey that Key is, of what Find returns; "" for the operator's
	Overridden bool   // it is one of the Store, and a declared one has its name: it is not used

	CreatedAt, UpdatedAt time.Time
}

// Origin names what keeps the state of its own answers; see State. A provider may read what
// it made for one of its customers for that one alone.
func (r *Record) Origin() string {
	origin := string(r.Provider) + " " + r.BaseURL + " " + r.Upstream
	if r.OwnKey != "" {
		origin += " " + r.OwnKey
	}
	return origin
}

// only is the tenant that alone may use the model, "" if others may.
func (r *Record) only() tenant.ID {
	if r.AllTenants || len(r.Plans) > 0 || len(r.Tenants) != 1 {
		return ""
	}
	return r.Tenants[0]
}

// Through does the requests of the model for the one tenant that may use it, if it is one.
func (r *Record) Through(rt http.RoundTripper) http.RoundTripper {
	if id := r.only(); id != "" {
		return outbound.Transport(rt, id)
	}
	return rt
}

// OwnedBy is the provider as lists of models name it: the part of the name before its first
// slash, or else the wire protocol.
func (r *Record) OwnedBy() string {
	if owner, _, ok := strings.Cut(r.Name, "/"); ok {
		return owner
	}
	return string(r.Provider)
}

// Store keeps records of models. What does not exist is a NotFound fault, a name that is
// taken a Conflict. The list is in order of creation. A change appends its events in the
// same transaction.
type Store interface {
	CreateModel(ctx context.Context, r Record, events ...tenant.PolicyEvent) error
	// UpdateModel writes everything but id, name, provider and the time of creation.
	UpdateModel(ctx context.Context, r Record, events ...tenant.PolicyEvent) error
	Model(ctx context.Context, idOrName string) (Record, error)
	Models(ctx context.Context) ([]Record, error)
	// DeleteModel also deletes tenants' own keys for it.
	DeleteModel(ctx context.Context, id string, events ...tenant.PolicyEvent) error

	// SetOwnKey writes a key in place of the one that the tenant has for the model.
	SetOwnKey(ctx context.Context, k OwnKey, events ...tenant.PolicyEvent) error
	OwnKey(ctx context.Context, id tenant.ID, model string) (OwnKey, error)
	// OwnKeys are a tenant's, in the order that they were given in.
	OwnKeys(ctx context.Context, id tenant.ID) ([]OwnKey, error)
	DeleteOwnKey(ctx context.Context, id tenant.ID, model string, events ...tenant.PolicyEvent) error
}
