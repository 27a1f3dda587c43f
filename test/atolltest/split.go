//go:build roles

package atolltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// With the build tag roles, Launch starts a gateway and an executor in place of one server, unless the
// test chooses roles or services itself.
func init() { launchSplit, endSplit = split.launch, split.end }

var split = &splitter{clusters: map[string]*splitCluster{}}

// splitter has the clusters of the servers of a test binary, by the executor's data folder.
type splitter struct {
	mu       sync.Mutex
	postgres *PostgresServer
	s3       *S3Server
	clusters map[string]*splitCluster
}

type splitCluster struct {
	*Cluster
	nats    *natsserver.Server
	gateway string // its data folder
	address string // of the executor
}

// ofOneServer are settings that a test changes only if it is about the services of a server.
var ofOneServer = []string{"ATOLL_ROLE=", "ATOLL_NATS=", "ATOLL_DATABASE=", "ATOLL_BLOBS=", "ATOLL_NODE_LISTEN=", "ATOLL_SECRET_KEY="}

func (s *splitter) launch(ctx context.Context, o Options) (*Server, bool, error) {
	for _, set := range o.Env {
		if slices.ContainsFunc(ofOneServer, func(name string) bool { return strings.HasPrefix(set, name) }) {
			return nil, false, nil
		}
	}
	made, err := s.launchBoth(ctx, o)
	return made, true, err
}

func (s *splitter) launchBoth(ctx context.Context, o Options) (_ *Server, err error) {
	remove := o.Data == ""
	if remove {
		if o.Data, err = NewData(); err != nil {
			return nil, err
		}
	}
	c, err := s.cluster(ctx, o.Data)
	if err != nil {
		return nil, err
	}
	of, err := c.GatewayOptions(c.gateway, o.Env...)
	if err != nil {
		return nil, err
	}
	of.Hosts, of.NotReady, of.User = o.Hosts, true, nil // it reads files of tests
	gateway, err := launchOne(ctx, of)
	if err != nil {
		return nil, err
	}
	of, err = c.ExecutorOptions(o.Data, c.address, o.Env...)
	if err != nil {
		return nil, errors.Join(err, gateway.Close())
	}
	of.Env = append(of.Env, "ATOLL_DEV_KEY=", "ATOLL_DEV=off")
	of.Hosts, of.NotReady = o.Hosts, o.NotReady
	executor, err := launchOne(ctx, of)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w\ngateway:\n%s", err, gateway.Log()), gateway.Close())
	}
	executor.URL, executor.machine, executor.gateway, executor.remove = gateway.URL, executor.URL, gateway, remove
	if !o.NotReady {
		err = gateway.WaitReady(ctx)
	}
	return executor, err
}

// cluster returns the cluster of an executor's data folder.
func (s *splitter) cluster(ctx context.Context, data string) (_ *splitCluster, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[data]; c != nil {
		return c, nil
	}
	always := context.WithoutCancel(ctx)
	if s.postgres == nil {
		if s.postgres, err = LaunchPostgres(always); err != nil {
			return nil, err
		}
		if s.s3, err = LaunchS3(always); err != nil {
			return nil, err
		}
	}
	folder, err := os.MkdirTemp("", "atoll-split-")
	if err != nil {
		return nil, err
	}
	c := &splitCluster{gateway: filepath.Join(folder, "gateway")}
	if err := errors.Join(os.Chmod(folder, 0o755), os.Mkdir(c.gateway, 0o700)); err != nil {
		return nil, err
	}
	if c.nats, err = natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: filepath.Join(folder, "nats"), NoSigs: true, MaxPayload: 8 << 20}); err != nil {
		return nil, err
	}
	c.nats.Start()
	if !c.nats.ReadyForConnections(time.Minute) {
		return nil, errors.New("the NATS server does not start")
	}
	database, err := s.postgres.Database(ctx)
	if err != nil {
		return nil, err
	}
	if c.Cluster, err = NewCluster(filepath.Join(folder, "certificates"), database, c.nats.ClientURL(), s.s3.URL, filepath.Base(folder)+"/"); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	c.address = "127.0.0.1:" + port
	s.clusters[data] = c
	return c, err
}

// end stops the services of all clusters.
func (s *splitter) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.clusters {
		c.nats.Shutdown()
		c.nats.WaitForShutdown()
		errs = append(errs, os.RemoveAll(filepath.Dir(c.gateway)))
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Close(), s.s3.Close())
	}
	return errors.Join(errs...)
}
