package requirement

import (
	"context"
	"strings"
	"sync"
	"time"
)

// State is how far the installing of a set is.
type State string

const (
	Building State = "building" // or waits for its turn
	Ready    State = "ready"
	Failed   State = "failed"
)

// Build is how far one executor is with installing a set, or with a variant of the default image.
type Build struct {
	Ref       string // see Ref and Variant
	Executor  string
	Image     string // that the set is installed in, by its name in the image store
	State     State
	Log       []string // the last lines that the installers wrote; of one that failed the last says why
	UpdatedAt time.Time
}

// Wanted is a set that an environment has, or a variant of the default image.
type Wanted struct {
	Image   string   // below the packages
	Set     Set      // empty only for a variant without packages
	Tenants []string // whose environments have it, by id
}

// Ref is the reference of the image with these packages.
func (w *Wanted) Ref() string { return Ref(w.Image, &w.Set) }

// Store keeps builds, and tells what environments want.
type Store interface {
	// Wanted are the sets that environments of all tenants have, and the variants of the default
	// image, each once.
	Wanted(ctx context.Context) ([]Wanted, error)
	// Builds are those of a reference, of all executors; Of are those of an executor.
	Builds(ctx context.Context, ref string) ([]Build, error)
	Of(ctx context.Context, executor string) ([]Build, error)
	// Put makes or replaces the build of a reference and executor.
	Put(ctx context.Context, b Build) error
	// Retry forgets the builds of a reference that have failed.
	Retry(ctx context.Context, ref string) error
	Delete(ctx context.Context, ref, executor string) error
	// UsedImages are the names of the images that named sandboxes and snapshots need.
	UsedImages(ctx context.Context) ([]string, error)
}

// Bounds of Build.Log.
const (
	MaxLines = 40
	MaxLine  = 500 // bytes
)

// Tail collects the last lines of a text that comes in pieces. The zero value is ready.
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

// Lines are the last lines so far.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
	return append([]string{}, t.lines...)
}
