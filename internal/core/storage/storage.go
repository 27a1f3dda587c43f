// Package storage has connections, buckets and volumes that environments and keys
// mount at /data/{slug}, and the rules of what of them a program sees.
//
// What is here is pure. How a folder or a bucket comes to be mounted is the
// business of the packages below it.
package storage

import (
	"regexp"
	"time"
)

// Kind is what a connection leads to.
type Kind string

const (
	S3     Kind = "s3"     // a bucket of any service that speaks S3
	GCS    Kind = "gcs"    // a bucket of Google Cloud Storage
	Azure  Kind = "azure"  // a container of Azure Blob Storage
	Volume Kind = "volume" // a folder that the operator keeps
)

// Kinds lists every kind.
var Kinds = []Kind{S3, GCS, Azure, Volume}

// Root is the folder of sandboxes that connections are mounted in.
const Root = "/data"

// Slug is what a connection is called: the name of its folder in Root. None looks
// like an id.
var Slug = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Connection is storage of a tenant.
type Connection struct {
	ID       string // "con_" and 16 hexadecimal digits
	Tenant   string // id
	Slug     string // unique within the tenant
	Kind     Kind
	Prefix   Path // all of it that callers see
	ReadOnly bool
	Target
	CreatedAt time.Time
}

// Target is where a connection leads. A volume has none.
type Target struct {
	Bucket    string // of Azure: the container
	Region    string // of S3
	Endpoint  string // URL of the service; "" for the provider's own
	PathStyle bool   // of S3: the bucket is in the path and not in the host's name
	Account   string // of Azure
	Credentials
}

// Credentials are stored encrypted and never shown.
type Credentials struct {
	AccessKeyID, SecretAccessKey string // of S3
	ServiceAccount               string // of GCS: the key file's JSON
	AccountKey                   string // of Azure
}

// Grant lets an environment, or a key, mount a connection.
type Grant struct {
	ID          string // "grt_" and 16 hexadecimal digits
	Tenant      string // id
	Connection  string // id
	Environment string // id; either this or Key is set
	Key         string // id
	Prefix      Path   // within the connection's prefix, and like it from the connection's root
	ReadOnly    bool
	CreatedAt   time.Time
}

// Granted is a grant with its connection.
type Granted struct {
	Grant      Grant
	Connection Connection
}

// Mount is what one execution sees of a connection. It holds credentials.
type Mount struct {
	Slug       string
	Connection string // id
	Kind       Kind
	Path       Path // what is mounted, from the connection's root
	ReadOnly   bool
	Target
}

// Folder is where a mount is inside a sandbox.
func (m *Mount) Folder() string { return Root + "/" + m.Slug }

// Label says in records what was mounted: slug, path and mode.
func (m *Mount) Label() string {
	mode := "rw"
	if m.ReadOnly {
		mode = "ro"
	}
	return m.Slug + "/" + string(m.Path) + ":" + mode
}

// Labels are those of several mounts.
func Labels(mounts []Mount) []string {
	var out []string
	for i := range mounts {
		out = append(out, mounts[i].Label())
	}
	return out
}

// MaxList is the most entries of a folder that are listed.
const MaxList = 10_000

// File is an entry of a folder.
type File struct {
	Name, Path string // Path is from the connection's root
	Size       int64
	Modified   time.Time
	IsFolder   bool
}
