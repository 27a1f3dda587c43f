package requirement

import (
	"context"
	"strings"
	"sync"
	"time"
)

// State is the progress of a Build.
type State string

const (
	Building State = "building" // or queued
	Ready    State = "ready"
	Failed   State = "failed"
)

// Build is one executor's installation of a package set or of a variant of the default image.
type Build struct {
	Ref       string // see Ref and Variant
	Executor  string
	Image     string // name of the resulting image in the image store
	State     State
	Log       []string // the last lines of the installers' output; if the build failed, the last one says why
	UpdatedAt time.Time
}

// Wanted is a package set that an environment requires, or a variant of the default image.
type Wanted struct {
	Image   string   // base image of the packages
	Set     Set      // empty only for a variant without packages
	Tenants []string // ids of the tenants whose environments require it
}

// Ref returns the reference of the image with these packages.
func (w *Wanted) Ref() string { return Ref(w.Image, &w.Set) }

// Store keeps builds and reports what environments require.
type Store interface {
	// Wanted lists the distinct sets that environments of all tenants require, and the variants of
	// the default image.
	Wanted(ctx context.Context) ([]Wanted, error)
	// Builds returns a reference's builds on all executors; Of returns an executor's builds.
	Builds(ctx context.Context, ref string) ([]Build, error)
	Of(ctx context.Context, executor string) ([]Build, error)
	// Put creates or replaces the build of a reference on an executor.
	Put(ctx context.Context, b Build) error
	// Retry deletes the failed builds of a reference, so that executors build it again.
	Retry(ctx context.Context, ref string) error
	Delete(ctx context.Context, ref, executor string) error
	// UsedImages lists the names of the images that named sandboxes and snapshots use.
	UsedImages(ctx context.Context) ([]string, error)
}

// Limits of Build.Log.
const (
	MaxLines = 40
	MaxLine  = 500 // bytes
)

// Tail keeps the last lines of a text written to it. The zero value is ready.
type Tail struct {
	mu    sync.Mutex
	lines []string        // guarded by mu
	rest  strings.Builder // guarded by mu
}

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range p {
		switch {
		case b == '\n' || b == '\r':
			t.end()
		case t.rest.Len() < MaxLine:
			t.rest.WriteByte(b)
		}
	}
	return len(p), nil
}

// Say adds a line.
func (t *Tail) Say(line string) {
	_, _ = t.Write([]byte("\n" + line + "\n"))
}

func (t *Tail) end() {
	line := strings.TrimRight(strings.ToValidUTF8(t.rest.String(), "�"), " \t")
	t.rest.Reset()
	line = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	if line == "" {
		return
	}
	if len(t.lines) == MaxLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

// Lines returns the last lines so far.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
	return append([]string{}, t.lines...)
}
