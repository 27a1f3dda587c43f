// Package storage defines connections: buckets and volumes that environments and keys mount at
// /data/{slug}. It also decides which part of them a program sees.
//
// This package does no I/O. The packages below it mount directories and buckets.
package storage

import (
	"regexp"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Kind is the type of storage behind a connection.
type Kind string

const (
	S3     Kind = "s3"     // a bucket of any S3-compatible service
	GCS    Kind = "gcs"    // a bucket of Google Cloud Storage
	Azure  Kind = "azure"  // a container of Azure Blob Storage
	Volume Kind = "volume" // a directory that the operator provides
)

// Kinds lists every kind.
var Kinds = []Kind{S3, GCS, Azure, Volume}

// Root is the sandbox directory that contains the mounts.
const Root = "/data"

// Slug matches a connection's slug, which names its directory in Root. No slug looks like an id.
var Slug = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Connection is a tenant's storage.
type Connection struct {
	ID       string // "con_" and 16 hexadecimal digits
	Tenant   string // id
	Slug     string // unique within the tenant
	Kind     Kind
	Prefix   Path // the part that callers see
	ReadOnly bool
	Target
	CreatedAt time.Time
}

// Target locates a connection's storage; empty for a volume.
type Target struct {
	Bucket    string // for Azure: the container
	Region    string // for S3
	Endpoint  string // URL of the service; "" for the provider's default
	PathStyle bool   // for S3: put the bucket in the path instead of the host name
	Account   string // for Azure
	Credentials
}

// Credentials are stored encrypted and never returned.
type Credentials struct {
	AccessKeyID, SecretAccessKey string // for S3
	ServiceAccount               string // for GCS: the JSON of the key file
	AccountKey                   string // for Azure
}

// Grant lets an environment, or a key, mount a connection.
type Grant struct {
	ID          string // "grt_" and 16 hexadecimal digits
	Tenant      string // id
	Connection  string // id
	Environment string // id; set either this or Key
	Key         string // id
	Prefix      Path   // within the connection's prefix; both start at the connection's root
	ReadOnly    bool
	CreatedAt   time.Time
}

// Granted is a grant with its connection.
type Granted struct {
	Grant      Grant
	Connection Connection
}

// Mount is the part of a connection that one execution sees. It contains credentials.
type Mount struct {
	Slug       string
	Connection string // id
	Kind       Kind
	Path       Path // mounted directory, from the connection's root
	ReadOnly   bool
	Target
}

// Folder returns the mount point in a sandbox.
func (m *Mount) Folder() string { return Root + "/" + m.Slug }

// Label describes the mount in records: slug, path and mode.
func (m *Mount) Label() string {
	mode := "rw"
	if m.ReadOnly {
		mode = "ro"
	}
	return m.Slug + "/" + string(m.Path) + ":" + mode
}

// Labels returns the labels of mounts.
func Labels(mounts []Mount) []string {
	var out []string
	for i := range mounts {
		out = append(out, mounts[i].Label())
	}
	return out
}

// MaxList limits the entries that a directory listing returns.
const MaxList = 10_000

// ErrManyEntries rejects a listing of a directory with more than MaxList entries.
var ErrManyEntries = fault.New(fault.Invalid, "the folder has more than %d entries; name one below it", MaxList)

// File is an entry of a directory.
type File struct {
	Name, Path string // Path is from the connection's root
	Size       int64
	Modified   time.Time
	IsFolder   bool
}
