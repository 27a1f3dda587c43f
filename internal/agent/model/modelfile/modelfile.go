// Package modelfile reads the models that an operator declares in a YAML file. It reloads
// them when that file or a key file changes.
package modelfile

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/atoll-run/atoll/internal/agent/model/adapter" // registers the providers
	"github.com/atoll-run/atoll/internal/core/model"
)

// maxFile limits the size of a models file, in bytes.
const maxFile = 4 << 20

// every is the minimum interval between checks of the files. A request for a model triggers
// the check, so an idle server does no work.
const every = time.Second

// Config configures a File. All fields are required.
type Config struct {
	Path   string
	Getenv func(string) string // reads the variables that key_env names
	// Check rejects a base URL that the server may not connect to. It must not use the
	// network: a slow or broken network must not keep the server from starting.
	Check func(base *url.URL) error
	Log   *slog.Logger
}

// File holds the models that one file declares. It is safe for concurrent use.
type File struct {
	config Config
	now    func() time.Time

	mu     sync.Mutex
	models []model.Record // guarded by mu, like the fields below; replaced, never modified
	seen   versions       // file versions that models come from
	unfit  versions       // file versions that failed to load; already logged
	looked time.Time
}

// versions maps the path of each file read to its state; nil for a missing file. A file
// replaced by rename, or by retargeting a symbolic link, counts as changed.
type versions map[string]os.FileInfo

func (v versions) look() versions {
	out := make(versions, len(v))
	for path := range v {
		out[path] = stat(path)
	}
	return out
}

func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func (v versions) equal(w versions) bool {
	return maps.EqualFunc(v, w, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
	})
}

// Open reads a models file. It returns an error if any model in the file is invalid.
func Open(c Config) (*File, error) {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, err
	}
	c.Path = path
	f := &File{config: c, now: time.Now}
	if f.models, f.seen, err = f.read(); err != nil {
		return nil, err
	}
	f.looked = f.now()
	f.say()
	return f, nil
}

// Models returns the current models. If the changed file cannot be loaded, Models logs the
// error and returns the last models that loaded. The caller must not modify them.
func (f *File) Models() []model.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Sub(f.looked) < every && !now.Before(f.looked) {
		return f.models
	}
	f.looked = now
	if f.seen.look().equal(f.seen) {
		return f.models
	}
	if f.unfit != nil && f.unfit.look().equal(f.unfit) {
		return f.models // tried, and said
	}
	models, seen, err := f.read()
	if err != nil { // half of a change, perhaps
		f.unfit = seen
		f.config.Log.Error("cannot use the changed models file; keeping the previous models", "path", f.config.Path, "error", err)
		return f.models
	}
	f.models, f.seen, f.unfit = models, seen, nil
	f.say()
	return f.models
}

func (f *File) say() {
	f.config.Log.Info("models are declared by a file", "path", f.config.Path, "models", len(f.models))
}

// read loads the file and the key files. It stats each file before reading it, so that the
// next check notices a concurrent change. It returns the versions even with an error.
func (f *File) read() ([]model.Record, versions, error) {
	path := f.config.Path
	seen := versions{path: stat(path)}
	text, err := readSmall(path, maxFile)
	if err != nil {
		return nil, seen, fmt.Errorf("read models: %w", err)
	}
	all, err := parse(path, text)
	if err != nil {
		return nil, seen, err
	}
	changed := time.Now()
	if info := seen[path]; info != nil {
		changed = info.ModTime()
	}
	out := make([]model.Record, len(all))
	for i, m := range all {
		about := func(field string, err error) error {
			return fmt.Errorf("%s, line %d: models[%d]%s: %w", path, m.line, i, field, err)
		}
		if m.Key, err = f.key(m, seen); err != nil {
			return nil, seen, about("", err)
		}
		base, err := m.Validate()
		if err == nil {
			err = f.config.Check(base)
		}
		if err != nil {
			return nil, seen, about("", err)
		}
		m.CreatedAt = changed.UTC().Truncate(time.Microsecond)
		m.UpdatedAt = m.CreatedAt
		out[i] = m.Record
	}
	return slices.Clip(out), seen, nil
}

// key returns the key of a model from its variable or file. Errors contain no part of it.
func (f *File) key(m declared, seen versions) (string, error) {
	switch {
	case m.keyEnv != "":
		key := strings.TrimSpace(f.config.Getenv(m.keyEnv))
		if key == "" {
			return "", fmt.Errorf("key_env: the server's environment has no %s", m.keyEnv)
		}
		return key, nil
	case m.keyFile != "":
		path := m.keyFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(f.config.Path), path)
		}
		seen[path] = stat(path)
		text, err := readSmall(path, 2*model.MaxKey)
		if err != nil {
			return "", fmt.Errorf("key_file: %w", err)
		}
		key := strings.TrimSpace(string(text))
		if key == "" {
			return "", fmt.Errorf("key_file: %s is empty", path)
		}
		return key, nil
	}
	return "", nil
}

// readSmall reads a regular file of at most most bytes.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}
