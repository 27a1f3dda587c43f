package atolltest

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/infra/nodecert"
)

// Nobody is a user without rights, as which a gateway can run.
var Nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// Cluster are the services that gateways and executors share, as settings for Options.Env.
type Cluster struct {
	Gateway  []string // database, secret key and the services of Executor
	Executor []string // NATS, blobs and volumes
	Folder   string   // of the certificates; gateways must be able to read it
	Key      []byte   // secret_key
}

// NewCluster returns the settings of a cluster with these services. folder gets the certificates.
// prefix begins the names in the bucket.
func NewCluster(folder, database, nats, s3, prefix string) (*Cluster, error) {
	shared := []string{"ATOLL_NATS=" + nats, "ATOLL_BLOBS=" + s3 + "&prefix=" + prefix + "blobs/", "ATOLL_VOLUMES=" + s3 + "&prefix=" + prefix + "volumes/", "AWS_ACCESS_KEY_ID=" + S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + S3SecretKey}
	key := make([]byte, 32)
	rand.Read(key)
	return &Cluster{
		Executor: shared, Gateway: append([]string{"ATOLL_DATABASE=" + database, "ATOLL_SECRET_KEY=" + hex.EncodeToString(key)}, shared...), Folder: folder, Key: key,
	}, os.MkdirAll(folder, 0o755)
}

// GatewayOptions are the Options of a gateway of a cluster. It runs as Nobody if the test is root.
func (c *Cluster) GatewayOptions(data string, env ...string) (Options, error) {
	o := Options{Data: data, NoImages: true}
	if os.Getuid() == 0 {
		o.User = Nobody
	}
	certs, err := c.certificates(nodecert.Gateway, o.User)
	o.Env = append(append(append([]string{"ATOLL_ROLE=gateway"}, c.Gateway...), certs...), env...)
	return o, err
}

// ExecutorOptions are the Options of an executor of a cluster.
func (c *Cluster) ExecutorOptions(data, address string, env ...string) (Options, error) {
	certs, err := c.certificates(nodecert.Executor, nil)
	return Options{Data: data, Env: append(append(append([]string{"ATOLL_ROLE=executor", "ATOLL_DEV_KEY=", "ATOLL_NODE_LISTEN=" + address}, c.Executor...), certs...), env...)}, err
}

// certificates returns the settings of connections between servers at 127.0.0.1.
func (c *Cluster) certificates(role nodecert.Role, owner *syscall.Credential) ([]string, error) {
	cert, key, err := nodecert.Issue(c.Folder, "127.0.0.1", role, time.Hour)
	if err == nil && owner != nil {
		err = os.Chown(key, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		return nil, err
	}
	return []string{"ATOLL_NODE_CERT=" + cert, "ATOLL_NODE_KEY=" + key, "ATOLL_NODE_CA=" + filepath.Join(c.Folder, nodecert.CAFile)}, nil
}

// StartGateway and StartExecutor start a server of a cluster, which the end of the test stops.
func (c *Cluster) StartGateway(t testing.TB, env ...string) *Server {
	t.Helper()
	o, err := c.GatewayOptions("", env...)
	if err != nil {
		t.Fatal(err)
	}
	return Start(t, o)
}

func (c *Cluster) StartExecutor(t testing.TB, data string, env ...string) *Server {
	t.Helper()
	port, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.ExecutorOptions(data, "127.0.0.1:"+port, env...)
	if err != nil {
		t.Fatal(err)
	}
	return Start(t, o)
}
