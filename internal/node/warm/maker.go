// Package warm makes sandboxes whose interpreter has already started and waits
// for its program, and runs programs in them.
//
// It joins the runtime, the guest and an image; the pool decides when to make
// one, the execution service what to run in it.
package warm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/pool"
)

// Key names a kind of warm sandbox.
type Key struct {
	Image    string
	Variant  string // Config.Variant of its Maker
	Language execution.Language
	Preload  bool // the image's preloads are imported
	Home     bool // its home directory can be another one: see Sandbox.Enter
	Storage  bool // folders can be mounted below storage.Root: see Sandbox.Mount
}

func (k Key) String() string {
	s := k.Image + "/" + string(k.Language)
	if k.Variant != "" {
		s = k.Image + ":" + k.Variant + "/" + string(k.Language)
	}
	if k.Preload {
		s += "+preloads"
	}
	if k.Home {
		s += "+home"
	}
	if k.Storage {
		s += "+storage"
	}
	return s
}

// Config of a Maker.
type Config struct {
	Runtime   runtime.Runtime
	Image     *image.Image
	Variant   string // tells apart the Makers of one image; "" for one of them
	Limits    runtime.Limits
	Rules     runtime.Permissions // those that the guest enforces
	Env       map[string]string   // variables of the environment, known before any request
	Templates string              // folder for the checkpoints that preloaded sandboxes start from
	Homes     string              // folder of what sandboxes find other home directories in; "" for none
	Storage   string              // folder of the folders that sandboxes have at storage.Root; "" for none
	Log       *slog.Logger

	// Guest says what is wrong with a guest of some version; nil for nothing.
	Guest func(version string) error
}

// Maker makes warm sandboxes of one image.
type Maker struct {
	cfg       Config
	env       map[string]string // what every program finds, the request's own left out
	homeEnv   map[string]string // what one with a home directory of its own finds
	templates map[Key]*template
	cold      sync.Once // says once that interpreters cannot be warmed
}

// New returns a Maker.
func New(cfg Config) *Maker {
	if cfg.Image.Rootfs.Image == "" {
		cfg.Storage = "" // its mounts show other owners than they have, which is set up at the start
	}
	m := &Maker{cfg: cfg, env: programEnv(cfg.Image.Env, cfg.Env), templates: map[Key]*template{}}
	m.homeEnv = homeEnv(m.env, cfg.Image.Env, cfg.Env)
	for _, k := range m.Kinds() {
		m.templates[k] = &template{}
	}
	return m
}

// programEnv is the environment of every program: the image's, the user's, and
// the configured one.
func programEnv(imageEnv, configured map[string]string) map[string]string {
	env := map[string]string{
		"PATH": "/home/user/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG": "C.UTF-8",
	}
	maps.Copy(env, imageEnv)
	env["HOME"], env["USER"], env["LOGNAME"], env["SHELL"] = runtime.Home, "user", "user", "/bin/bash"
	maps.Copy(env, configured)
	return env
}

// Kinds lists the keys worth keeping ready: each language the image has, and one
// that can import modules ahead, such as Python, with the preloads when there are
// any; and where there can be, each of them for programs with a home directory of
// their own, and with storage.
func (m *Maker) Kinds() []Key {
	var keys []Key
	for _, l := range execution.Languages {
		if _, ok := m.cfg.Image.Interpreter(l); !ok {
			continue
		}
		keys = append(keys, m.kind(l, false))
		if language.Get(l).Import != nil && len(m.cfg.Image.Preloads) > 0 {
			keys = append(keys, m.kind(l, true))
		}
	}
	if m.cfg.Homes != "" {
		for _, k := range slices.Clone(keys) {
			k.Home = true
			keys = append(keys, k)
		}
	}
	if m.cfg.Storage != "" {
		for _, k := range slices.Clone(keys) {
			k.Storage = true
			keys = append(keys, k)
		}
	}
	return keys
}

// Some returns a language that the image has: l, if it does.
func (m *Maker) Some(l execution.Language) execution.Language {
	if _, ok := m.cfg.Image.Interpreter(l); ok || len(m.cfg.Image.Interpreters) == 0 {
		return l
	}
	return m.cfg.Image.Interpreters[0].Language
}

// Key returns the kind of sandbox that suits a program; home says that it has a
// home directory of its own, storage that folders are to be mounted for it.
func (m *Maker) Key(of execution.Language, code string, home, storage bool) Key {
	k := m.kind(of, language.Get(of).Import != nil && imports(code, m.cfg.Image.Preloads))
	k.Home, k.Storage = home, storage
	return k
}

func (m *Maker) kind(l execution.Language, preload bool) Key {
	return Key{Image: m.cfg.Image.Name, Variant: m.cfg.Variant, Language: l, Preload: preload}
}

// noInterpreter returns the error for a language that the image lacks, and lists its languages.
func (m *Maker) noInterpreter(l execution.Language) error {
	has := "none"
	if len(m.cfg.Image.Interpreters) > 0 {
		var titles []string
		for _, in := range m.cfg.Image.Interpreters {
			titles = append(titles, language.Get(in.Language).Title)
		}
		has = strings.Join(titles, ", ")
	}
	title := cmp.Or(language.Get(l).Title, string(l))
	return fault.New(fault.Invalid, "the image %q has no interpreter for %s (it has: %s); name a language that it has, or ask the operator to give the environment an image with %s: atoll env set TENANT NAME --image default",
		m.cfg.Image.Name, title, has, title)
}

// template is the checkpoint that preloaded sandboxes of a language start from.
type template struct {
	mu   sync.Mutex
	dir  string // "" until it was made
	fail error  // why it cannot be made; preloaded sandboxes are booted then
}

// readyTimeout bounds the making of one sandbox, its interpreter's start and
// imports included, on a machine that is busy with many.
const readyTimeout = 2 * time.Minute

// Make returns a warm sandbox. One that is awaited is handed over as soon as it
// can run a program: its interpreter starts with the program, which takes less
// altogether than starting it ahead. Preloads are worth it all the same. One of the
// reserve shares the memory of its preloads with the others.
func (m *Maker) Make(ctx context.Context, key Key, use pool.Use) (*Sandbox, error) {
	s, err := m.make(ctx, key, use)
	if err != nil || use == pool.Awaited {
		return s, err
	}
	used, err := s.instance.Usage(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("measure %s: %w", key, err), s.Destroy(context.WithoutCancel(ctx)))
	}
	s.memory = used.Memory
	return s, nil
}

func (m *Maker) make(ctx context.Context, key Key, use pool.Use) (*Sandbox, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("a sandbox of %s was not ready within %s", key, readyTimeout))
	defer cancel()
	interpreter, ok := m.cfg.Image.Interpreter(key.Language)
	if !ok {
		return nil, m.noInterpreter(key.Language)
	}
	if !key.Preload {
		return m.boot(ctx, key, interpreter, use != pool.Awaited)
	}
	dir, err := m.template(ctx, key, interpreter)
	if err == nil {
		return m.restore(ctx, key, dir, use == pool.Reserve)
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if errors.Is(err, errImport) {
		key.Preload = false // the program's own import will say what is wrong
	}
	return m.boot(ctx, key, interpreter, true)
}

// MakeMounted returns a sandbox of an id with folders of the host in it, for one
// program that is waited for: its interpreter starts with it. home says that the
// program has a home directory of its own.
func (m *Maker) MakeMounted(ctx context.Context, language execution.Language, home bool, id runtime.ID, mounts []runtime.Mount) (*Sandbox, error) {
	key := m.kind(language, false)
	key.Home = home
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("a sandbox of %s was not ready within %s", key, readyTimeout))
	defer cancel()
	if _, ok := m.cfg.Image.Interpreter(language); !ok {
		return nil, m.noInterpreter(language)
	}
	inst, err := m.instance(key, id, func(spec runtime.Spec) (runtime.Instance, error) {
		spec.Mounts = append(spec.Mounts, mounts...)
		return m.cfg.Runtime.Create(ctx, spec)
	})
	if err != nil {
		return nil, err
	}
	return m.confined(ctx, key, inst)
}

// spec is that of a new sandbox. What it needs on the host is made.
func (m *Maker) spec(key Key, id runtime.ID) (runtime.Spec, error) {
	spec := runtime.Spec{
		ID: id, Rootfs: m.cfg.Image.Rootfs, Limits: m.cfg.Limits,
		Traces: m.cfg.Rules.Process.Traced(),
		Labels: map[string]string{"pool": key.String()},
	}
	if key.Home {
		m := m.homeMount(spec.ID)
		if err := makeShared(m.Source); err != nil {
			return spec, fmt.Errorf("make the folder of a home directory: %w", err)
		}
		spec.Mounts = []runtime.Mount{m}
	}
	if key.Storage {
		source := filepath.Join(m.cfg.Storage, string(id))
		if err := makeOpen(source); err != nil {
			return spec, fmt.Errorf("make the folder for storage: %w", err)
		}
		spec.Mounts = append(spec.Mounts, runtime.Mount{Source: source, Target: storage.Root, Writable: true})
	}
	return spec, nil
}

// errImport says that the image's preloads cannot be imported.
var errImport = errors.New("cannot import the image's preloads")

// boot makes a sandbox from nothing and, where that is asked for, warms its
// interpreter.
func (m *Maker) boot(ctx context.Context, key Key, in image.Interpreter, start bool) (_ *Sandbox, err error) {
	inst, err := m.instance(key, runtime.NewID(), func(spec runtime.Spec) (runtime.Instance, error) { return m.cfg.Runtime.Create(ctx, spec) })
	if err != nil {
		return nil, err
	}
	s, err := m.confined(ctx, key, inst)
	if err != nil {
		return nil, err
	}
	if !start || language.Get(key.Language).Warm.Hook == "" {
		return s, nil
	}
	spec := initclient.WarmSpec{Command: s.command(in, s.env), Site: in.SiteDir}
	if key.Preload {
		spec.Preload = m.cfg.Image.Preloads
	}
	if err := s.guest.Warm(ctx, spec); err != nil {
		if g, ok := errors.AsType[*initclient.Error](err); ok && key.Preload {
			err = fmt.Errorf("%w: %s", errImport, g.Msg)
		} else if ok {
			// A read-only folder of site packages, for one. Programs still run,
			// in an interpreter that starts when they come.
			m.cold.Do(func() {
				m.cfg.Log.Info("an interpreter cannot be started ahead; programs start it themselves", "key", key.String(), "error", err)
			})
			return s, nil
		}
		return nil, errors.Join(fmt.Errorf("warm %s: %w", key, err), s.Destroy(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// instance makes a sandbox; what is made for it goes if that fails.
func (m *Maker) instance(key Key, id runtime.ID, start func(runtime.Spec) (runtime.Instance, error)) (runtime.Instance, error) {
	spec, err := m.spec(key, id)
	if err != nil {
		return nil, errors.Join(err, m.removeShared(id))
	}
	inst, err := start(spec)
	if err != nil {
		return nil, errors.Join(err, m.removeShared(spec.ID))
	}
	return inst, nil
}

// restore makes a sandbox from a template, and makes it differ from others of the template.
func (m *Maker) restore(ctx context.Context, key Key, dir string, share bool) (_ *Sandbox, err error) {
	inst, err := m.instance(key, runtime.NewID(), func(spec runtime.Spec) (runtime.Instance, error) { return m.cfg.Runtime.Restore(ctx, spec, dir, share) })
	if err != nil {
		return nil, err
	}
	s, err := m.adopt(ctx, key, inst)
	if err != nil {
		return nil, err
	}
	if err := s.guest.Reseed(ctx, initclient.Reseed{}); err != nil {
		return nil, errors.Join(fmt.Errorf("reseed %s: %w", key, err), s.Destroy(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// confined is adopt for an instance that was made from nothing: its guest is told
// the rules before anything else.
func (m *Maker) confined(ctx context.Context, key Key, inst runtime.Instance) (*Sandbox, error) {
	s, err := m.adopt(ctx, key, inst)
	if err != nil || !m.cfg.Rules.Restricts() {
		return s, err
	}
	if err := s.guest.Confine(ctx, m.cfg.Rules); err != nil {
		err = runtime.Unenforceable(err)
		return nil, errors.Join(err, s.Destroy(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// adopt dials the guest of a new instance; the instance goes if that fails.
func (m *Maker) adopt(ctx context.Context, key Key, inst runtime.Instance) (*Sandbox, error) {
	s, err := m.dial(ctx, key, inst)
	if err != nil {
		return nil, errors.Join(err, inst.Destroy(context.WithoutCancel(ctx)), m.removeShared(inst.ID()))
	}
	return s, nil
}

// Open takes over a sandbox that an earlier process made, as one for programs
// of a language, with a home directory of their own or not. It is left as it is
// if that fails.
func (m *Maker) Open(ctx context.Context, id runtime.ID, language execution.Language, home bool) (*Sandbox, error) {
	inst, err := m.cfg.Runtime.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	key := m.kind(language, false)
	key.Home = home
	s, err := m.dial(ctx, key, inst)
	if err != nil {
		return nil, errors.Join(err, inst.Detach())
	}
	return s, nil
}

// dial opens the connection to the guest of an instance, and checks both. That is done
// here, because no caller waits for a sandbox that is made ahead.
func (m *Maker) dial(ctx context.Context, key Key, inst runtime.Instance) (*Sandbox, error) {
	ctx, stop := whileAlive(ctx, inst)
	defer stop()
	c, err := initclient.Dial(ctx, inst.Channel())
	if err != nil {
		return nil, err
	}
	s := &Sandbox{maker: m, instance: inst, guest: c, env: m.env}
	if key.Home {
		s.env = m.homeEnv
	}
	if m.cfg.Guest != nil {
		s.unfit = m.cfg.Guest(c.Info().Version)
	}
	if held, ok := inst.(interface{ Check() error }); ok && s.unfit == nil {
		s.unfit = held.Check()
	}
	return s, nil
}

// whileAlive is ctx until the instance has ended.
func whileAlive(ctx context.Context, inst runtime.Instance) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with ctx
		select {
		case <-inst.Done():
			cancel(errors.New("the sandbox ended before its guest was ready"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// imports reports whether Python code seems to import one of the modules. It
// reads text, not syntax: being wrong costs time, not truth.
func imports(code string, modules []string) bool {
	if len(modules) == 0 {
		return false
	}
	for _, found := range importLine.FindAllStringSubmatch(code, -1) {
		for _, name := range moduleName.FindAllString(found[1], -1) {
			if slices.Contains(modules, name) {
				return true
			}
		}
	}
	return false
}
