package model

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Record describes a model that callers can name.
type Record struct {
	ID   string // "mdl_" and 16 hexadecimal digits
	Name string // unique in the installation

	Provider Provider
	Upstream string // the provider's name for the model
	BaseURL  string // of the provider's API
	Key      string // for the provider; stored encrypted, never returned; "" for none
	Spec

	// AllTenants lets every tenant use the model. Otherwise Tenants lists the allowed tenants and
	// Plans the allowed plans. In a declared model, Tenants may also hold names.
	AllTenants bool
	Tenants    []tenant.ID
	Plans      []string

	Source     string // path of the file that declares the model; "" if it comes from the Store
	OwnKey     string // id of the OwnKey in Key, set by Find; "" for the operator's key
	Overridden bool   // a declared model has the same name, so this stored one is not used

	CreatedAt, UpdatedAt time.Time
}

// Origin identifies the provider account that can read the state of the model's answers; see State.
// A provider may accept state only from the customer that it created the state for, so a tenant's
// own key is a part of the origin.
func (r *Record) Origin() string {
	origin := string(r.Provider) + " " + r.BaseURL + " " + r.Upstream
	if r.OwnKey != "" {
		origin += " " + r.OwnKey
	}
	return origin
}

// MaxTemperature returns the highest temperature that the model's provider accepts; 0 for no limit.
func (r *Record) MaxTemperature() float64 {
	if p := r.Provider.Protocol(); p != nil {
		return p.MaxTemperature
	}
	return 0
}

// only returns the only tenant that may use the model; "" if others may.
func (r *Record) only() tenant.ID {
	if r.AllTenants || len(r.Plans) > 0 || len(r.Tenants) != 1 {
		return ""
	}
	return r.Tenants[0]
}

// Through binds the transport to the tenant if exactly one tenant may use the model.
func (r *Record) Through(rt http.RoundTripper) http.RoundTripper {
	if id := r.only(); id != "" {
		return outbound.Transport(rt, id)
	}
	return rt
}

// OwnedBy returns the owner as model lists show it: the part of the name before the first slash, or
// else the wire protocol.
func (r *Record) OwnedBy() string {
	if owner, _, ok := strings.Cut(r.Name, "/"); ok {
		return owner
	}
	return string(r.Provider)
}

// Store keeps models. It returns a NotFound fault for an unknown model and a Conflict fault for a
// taken name. Lists are in order of creation. Each change appends its events in the same
// transaction.
type Store interface {
	CreateModel(ctx context.Context, r Record, events ...tenant.PolicyEvent) error
	// UpdateModel writes all fields except id, name, provider and creation time.
	UpdateModel(ctx context.Context, r Record, events ...tenant.PolicyEvent) error
	Model(ctx context.Context, idOrName string) (Record, error)
	Models(ctx context.Context) ([]Record, error)
	// DeleteModel also deletes the tenants' own keys for the model.
	DeleteModel(ctx context.Context, id string, events ...tenant.PolicyEvent) error

	// SetOwnKey sets or replaces the tenant's key for the model.
	SetOwnKey(ctx context.Context, k OwnKey, events ...tenant.PolicyEvent) error
	OwnKey(ctx context.Context, id tenant.ID, model string) (OwnKey, error)
	// OwnKeys returns a tenant's keys, oldest first.
	OwnKeys(ctx context.Context, id tenant.ID) ([]OwnKey, error)
	DeleteOwnKey(ctx context.Context, id tenant.ID, model string, events ...tenant.PolicyEvent) error
}
