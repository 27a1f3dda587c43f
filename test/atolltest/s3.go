package atolltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// What S3Server lets in.
const (
	S3AccessKey = "test"
	S3SecretKey = "testtest"
)

// S3Server is a real S3 server with an empty bucket, in a process of its own.
type S3Server struct {
	URL      string // of the bucket, for package blob; the keys come from the environment
	Endpoint string // of the server
	Bucket   string // the folder that is the bucket: a file in it is an object

	cmd  *exec.Cmd
	data string
	out  bytes.Buffer
}

// S3 starts a server that the end of the test stops and removes, sets the
// variables that its clients read, and returns the URL of its bucket.
func S3(t testing.TB) string {
	t.Helper()
	s := StartS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", S3AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", S3SecretKey)
	return s.URL
}

// StartS3 starts a server that the end of the test stops and removes.
func StartS3(t testing.TB) *S3Server {
	t.Helper()
	s, err := LaunchS3(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("remove the S3 server's data: %v", err)
		}
		if t.Failed() {
			t.Log(s.out.String())
		}
	})
	return s
}

// s3Start bounds the start on a busy machine.
const s3Start = time.Minute

// LaunchS3 builds and starts a server for a caller who closes it.
func LaunchS3(ctx context.Context) (_ *S3Server, err error) {
	root, err := repo()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(cache, "atoll-test", "versitygw")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "internal/infra/blob/s3server"), "-o", bin, "github.com/versity/versitygw/cmd/versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the S3 server: %w: %s", err, out)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	s := &S3Server{Endpoint: "http://" + addr}
	s.URL = "s3://bucket?region=us-east-1&use_path_style=true&endpoint=" + s.Endpoint
	if s.data, err = os.MkdirTemp("", "atoll-s3-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.Bucket = filepath.Join(s.data, "buckets", "bucket")
	meta := filepath.Join(s.data, "meta") // without it the server cannot put together what comes in parts
	if err := errors.Join(os.MkdirAll(s.Bucket, 0o700), os.Mkdir(meta, 0o700)); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), bin, "--access", S3AccessKey, "--secret", S3SecretKey, "--port", addr, "--quiet", "posix", "--sidecar", meta, filepath.Dir(s.Bucket))
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s3Start, errors.New("the S3 server did not start"))
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		var dial net.Dialer
		c, err := dial.DialContext(ctx, "tcp", addr)
		if err == nil {
			return s, c.Close()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Close ends the server and removes its data.
func (s *S3Server) Close() error {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill() // it has ended already
		_ = s.cmd.Wait()
	}
	return os.RemoveAll(s.data)
}
