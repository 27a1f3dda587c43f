package admin

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Target is where a connection leads; a volume has none.
type Target struct {
	Bucket    string `json:"bucket,omitzero" doc:"The bucket; of azure the container."`
	Region    string `json:"region,omitzero" doc:"Of s3; required without an endpoint."`
	Endpoint  string `json:"endpoint,omitzero" doc:"URL of the service, of s3 and azure; the provider's own if omitted."`
	PathStyle bool   `json:"path_style,omitzero" doc:"Of s3: the bucket is in the path and not in the host's name."`
	Account   string `json:"account,omitzero" doc:"Of azure: the storage account."`
}

// Connection is a connection as the admin API shows it: without its credentials.
type Connection struct {
	ID       string `json:"id" doc:"con_ and 16 hexadecimal digits."`
	Tenant   string `json:"tenant" doc:"The tenant's id."`
	Slug     string `json:"slug" doc:"Sandboxes mount it at /data/{slug}."`
	Kind     string `json:"kind" enum:"s3,gcs,azure,volume" doc:"Kind of the storage."`
	Prefix   string `json:"prefix" doc:"All that anything sees of it; empty for the whole."`
	ReadOnly bool   `json:"read_only"`
	Target
	CreatedAt time.Time `json:"created_at"`
}

// Credentials of a bucket. They are stored encrypted and never shown.
type Credentials struct {
	AccessKeyID     string `json:"access_key_id,omitzero" doc:"Of s3."`
	SecretAccessKey string `json:"secret_access_key,omitzero" doc:"Of s3."`
	ServiceAccount  string `json:"service_account,omitzero" doc:"Of gcs: the JSON of a service account's key file."`
	AccountKey      string `json:"account_key,omitzero" doc:"Of azure."`
}

// ConnectionChange is what PATCH can change of a connection; omitted fields stay unchanged.
type ConnectionChange struct {
	Prefix      *string      `json:"prefix,omitzero" maxLength:"512" doc:"The part of the storage that is mounted: a folder, without a slash at the ends."`
	ReadOnly    *bool        `json:"read_only,omitzero"`
	Credentials *Credentials `json:"credentials,omitzero" doc:"Replaces them all."`
}

// NewConnection is the body that makes a connection.
type NewConnection struct {
	Slug *string `json:"slug" required:"true" pattern:"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" doc:"Name in paths: sandboxes mount it at /data/{slug}."`
	Kind *string `json:"kind" required:"true" enum:"s3,gcs,azure,volume" doc:"Kind of the storage."`
	Target
	ConnectionChange
}

// Grant has an environment or a key mount a connection.
type Grant struct {
	ID          string    `json:"id" doc:"grt_ and 16 hexadecimal digits."`
	Connection  string    `json:"connection" doc:"The connection's id."`
	Environment *string   `json:"environment" doc:"Id of the environment that mounts it; null for a key's."`
	Key         *string   `json:"key" doc:"Id of the key that mounts it; null for an environment's."`
	Prefix      string    `json:"prefix" doc:"Mounted folder, from the connection's root; empty for the connection's whole prefix."`
	ReadOnly    bool      `json:"read_only"`
	CreatedAt   time.Time `json:"created_at"`
}

// NewGrant is the body that makes a grant.
type NewGrant struct {
	Environment *string `json:"environment,omitzero" doc:"Name or id; either this or key."`
	Key         *string `json:"key,omitzero" doc:"Name or id."`
	Prefix      *string `json:"prefix,omitzero" maxLength:"512" doc:"Within the connection's prefix and, for a key, that of its environment's grant; like them from the connection's root."`
	ReadOnly    *bool   `json:"read_only,omitzero"`
}

func connectionOf(c storage.Connection) Connection {
	t := c.Target
	return Connection{
		ID: c.ID, Tenant: c.Tenant, Slug: c.Slug, Kind: string(c.Kind), Prefix: string(c.Prefix), ReadOnly: c.ReadOnly,
		Target: Target{t.Bucket, t.Region, t.Endpoint, t.PathStyle, t.Account}, CreatedAt: c.CreatedAt,
	}
}

func grantOf(g storage.Grant) Grant {
	return Grant{
		ID: g.ID, Connection: g.Connection, Environment: httpapi.OrNull(g.Environment), Key: httpapi.OrNull(g.Key),
		Prefix: string(g.Prefix), ReadOnly: g.ReadOnly, CreatedAt: g.CreatedAt,
	}
}

func (c ConnectionChange) domain() tenant.ConnectionChange {
	out := tenant.ConnectionChange{Prefix: c.Prefix, ReadOnly: c.ReadOnly}
	if c.Credentials != nil {
		given := storage.Credentials(*c.Credentials)
		out.Credentials = &given
	}
	return out
}

func (in NewConnection) domain() (prefix string, _ storage.Connection) {
	t := in.Target
	out := storage.Connection{
		Slug: *in.Slug, Kind: storage.Kind(*in.Kind), ReadOnly: in.ReadOnly != nil && *in.ReadOnly,
		Target: storage.Target{Bucket: t.Bucket, Region: t.Region, Endpoint: t.Endpoint, PathStyle: t.PathStyle, Account: t.Account},
	}
	if in.Credentials != nil {
		out.Credentials = storage.Credentials(*in.Credentials)
	}
	if in.Prefix != nil {
		prefix = *in.Prefix
	}
	return prefix, out
}
