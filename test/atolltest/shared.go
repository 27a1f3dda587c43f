package atolltest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is the server that most tests of a package use. It starts with the
// first of them.
type Shared struct {
	Options Options

	once sync.Once
	s    *Server
	err  error
}

// Get returns the server.
func (h *Shared) Get(t testing.TB) *Server {
	t.Helper()
	s, err := h.launch()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *Shared) launch() (*Server, error) {
	h.once.Do(func() { h.s, h.err = Launch(context.Background(), h.Options) })
	return h.s, h.err
}

// Main runs a package's tests; TestMain calls it. It fails without what they
// need, and when anything is left of the server after all that they have done
// to it.
func (h *Shared) Main(m *testing.M) {
	for _, needed := range []func() (string, error){Binary, ImageDir} {
		if _, err := needed(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if s, err := h.launch(); err == nil {
		if err := s.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the shared server: %v\n%s", err, s.Log())
			code = 1
		}
	}
	if endSplit != nil {
		if err := endSplit(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the services of gateways and executors: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// SharedPostgres is the PostgreSQL that most tests of a package use, each with a
// database of its own. It starts with the first of them.
type SharedPostgres struct {
	once sync.Once
	s    *PostgresServer
	err  error
}

// Get returns the server.
func (h *SharedPostgres) Get(t testing.TB) *PostgresServer {
	t.Helper()
	h.once.Do(func() { h.s, h.err = LaunchPostgres(context.Background()) })
	if h.err != nil {
		t.Fatal(h.err)
	}
	return h.s
}

// Main runs a package's tests and ends the server; TestMain calls it.
func (h *SharedPostgres) Main(m *testing.M) {
	code := m.Run()
	if h.s != nil {
		if err := h.s.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the shared PostgreSQL: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
