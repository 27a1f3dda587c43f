package atolltest

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresServer is a real PostgreSQL of a test's own: a folder, a port, a
// user and a password. It can be stopped and started again.
type PostgresServer struct {
	URL string // of a database that exists

	bin, data, port string
	password        string
	settings        []string            // NAME=VALUE, over those that start sets
	user            *syscall.Credential // nil for ours: PostgreSQL refuses to run as root

	mu     sync.Mutex
	cmd    *exec.Cmd     // guarded by mu; nil while it is stopped
	exited chan struct{} // guarded by mu
	log    strings.Builder
	logMu  sync.Mutex // guards log
	dbs    int        // guarded by mu; databases made so far
}

// postgresStart bounds a start or a stop on a busy machine.
const postgresStart = time.Minute

// Durable is a setting for those who measure. Without it files are not forced to
// disk: that would help after the end of the machine, which no test has, and the
// files of a database for each test keep a slow disk busy for minutes.
const Durable = "fsync=on"

// Postgres starts a server that the end of the test stops and removes.
func Postgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	s, err := LaunchPostgres(t.Context(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

// LaunchPostgres starts a server for a caller who closes it.
func LaunchPostgres(ctx context.Context, settings ...string) (_ *PostgresServer, err error) {
	s := &PostgresServer{password: rand.Text(), settings: settings}
	if s.bin, err = postgresBin(); err != nil {
		return nil, err
	}
	if s.user, err = postgresUser(); err != nil {
		return nil, err
	}
	if s.data, err = os.MkdirTemp("", "atoll-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.init(ctx); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	s.URL = s.url("postgres")
	return s, nil
}

// postgresBin finds the newest server that Debian's packages have put on the
// machine, or the one in the path.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		path, err := exec.LookPath("postgres")
		if err != nil {
			return "", fmt.Errorf("PostgreSQL is not installed (scripts/test-deps.sh does it): %w", err)
		}
		return filepath.Dir(path), nil
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // 0 for a name that is no number
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

func postgresUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// command prepares a program of PostgreSQL. It dies with us.
func (s *PostgresServer) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.data
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (s *PostgresServer) init(ctx context.Context) error {
	password := filepath.Join(s.data, "password")
	if err := os.WriteFile(password, []byte(s.password), 0o600); err != nil {
		return err
	}
	if s.user != nil {
		for _, path := range []string{s.data, password} {
			if err := os.Chown(path, int(s.user.Uid), int(s.user.Gid)); err != nil {
				return err
			}
		}
	}
	out, err := s.command(ctx, "initdb", "-D", s.cluster(), "-U", "atoll", "-E", "UTF8", "--locale=C.UTF-8",
		"--auth=scram-sha-256", "--pwfile="+password, "--no-sync", "--no-instructions").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (s *PostgresServer) cluster() string { return filepath.Join(s.data, "cluster") }

func (s *PostgresServer) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("atoll", s.password), Host: net.JoinHostPort("127.0.0.1", s.port), Path: database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Start starts the server, on the port it had before if there was one, and
// returns when it takes connections.
func (s *PostgresServer) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errors.New("PostgreSQL is running")
	}
	if s.port != "" {
		return s.start(ctx)
	}
	var err error
	for range 3 { // another process may take a port between our choice and its use
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = s.start(ctx); err == nil {
			return nil
		}
	}
	return err
}

func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func (s *PostgresServer) start(ctx context.Context) error {
	args := []string{"-D", s.cluster(), "-p", s.port}
	for _, v := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "fsync=off"}, s.settings...) {
		args = append(args, "-c", v)
	}
	cmd := s.command(context.WithoutCancel(ctx), "postgres", args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready, exited := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(exited)
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			s.logMu.Lock()
			s.log.WriteString(lines.Text() + "\n")
			s.logMu.Unlock()
			if strings.Contains(lines.Text(), "ready to accept connections") {
				once.Do(func() { close(ready) })
			}
		}
		cmd.Wait()
	}()
	s.cmd, s.exited = cmd, exited
	limit, cancel := context.WithTimeout(ctx, postgresStart)
	defer cancel()
	select {
	case <-ready:
		return nil
	case <-exited:
		s.cmd = nil
		return fmt.Errorf("PostgreSQL ended at its start:\n%s", s.Log())
	case <-limit.Done():
		return errors.Join(fmt.Errorf("PostgreSQL does not start: %w\n%s", limit.Err(), s.Log()), s.stop(syscall.SIGQUIT))
	}
}

// Stop ends the server as its administrator would, cutting off connections.
func (s *PostgresServer) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop(syscall.SIGINT)
}

// Kill ends the server as a crash would.
func (s *PostgresServer) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop(syscall.SIGQUIT)
}

func (s *PostgresServer) stop(sig syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
	case <-time.After(postgresStart):
		s.cmd.Process.Kill()
		return fmt.Errorf("PostgreSQL does not end:\n%s", s.Log())
	}
	s.cmd = nil
	return nil
}

// Close ends the server and removes its folder, whose files need no order.
func (s *PostgresServer) Close() error { return errors.Join(s.Kill(), os.RemoveAll(s.data)) }

// Log is what the server has said so far.
func (s *PostgresServer) Log() string {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return s.log.String()
}

// Database makes a fresh database and returns its URL.
func (s *PostgresServer) Database(ctx context.Context) (string, error) { return s.Clone(ctx, "") }

// Clone makes a copy of a database that is not in use, a fresh one if it is empty,
// and returns its URL.
func (s *PostgresServer) Clone(ctx context.Context, of string) (string, error) {
	s.mu.Lock()
	s.dbs++
	name := "test" + strconv.Itoa(s.dbs)
	s.mu.Unlock()
	query := "CREATE DATABASE " + name
	if of != "" {
		u, err := url.Parse(of)
		if err != nil {
			return "", err
		}
		query += " TEMPLATE " + pgx.Identifier{strings.TrimPrefix(u.Path, "/")}.Sanitize()
	}
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, query); err != nil {
		return "", err
	}
	return s.url(name), nil
}
