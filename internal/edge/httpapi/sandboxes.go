package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Sandboxes are the named sandboxes, whichever machine has them; a directory.Directory is.
type Sandboxes interface {
	sandbox.Node
	GetSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) (*sandbox.Snapshot, error)
	ListSnapshots(ctx context.Context, p *tenant.Principal, cursor string, limit int) (page []*sandbox.Snapshot, next string, err error)
	DeleteSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) error
	Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error
}

const (
	sandboxesPath = "/v1/sandboxes"
	sandboxPath   = sandboxesPath + "/{sandbox}"
	orphansPath   = "/v1/admin/sandboxes/orphans"
)

func (s *Server) sandboxRoutes() []route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return s.acts([]act{
		{get, sandboxesPath, "", s.listSandboxes},
		{post, sandboxesPath, "sandbox_create", s.createSandbox},
		{get, sandboxPath, "", s.getSandbox},
		{del, sandboxPath, "sandbox_destroy", s.deleteSandbox},
		{put, sandboxPath + "/timeout", "sandbox_timeout", s.putSandboxTimeout},
		{put, sandboxPath + "/network", "sandbox_network", s.putSandboxNetwork},
		{post, sandboxPath + "/sleep", "sandbox_sleep", s.sleepSandbox},
		{post, sandboxPath + "/fork", "sandbox_fork", s.forkSandbox},
		{get, sandboxPath + "/metrics", "", s.getSandboxMetrics},
		{get, sandboxPath + "/ports", "", s.listSandboxPorts},
		{get, orphansPath, "", s.listOrphans},
		{del, orphansPath, "sandbox_reap", s.reapOrphans},

		{get, sandboxPath + "/files", "file_read", s.getSandboxFile},
		{put, sandboxPath + "/files", "file_write", s.putSandboxFile},
		{del, sandboxPath + "/files", "file_delete", s.deleteSandboxFile},
		{get, sandboxPath + "/files/stat", "", s.statSandboxFile},
		{get, sandboxPath + "/files/list", "", s.listSandboxFiles},
		{get, sandboxPath + "/files/watch", "file_watch", s.watchSandboxFiles},
		{post, sandboxPath + "/files/directories", "file_mkdir", s.makeSandboxFolder},
		{post, sandboxPath + "/files/move", "file_move", s.moveSandboxFile},
		{get, sandboxPath + "/archive", "archive_read", s.packSandbox},
		{put, sandboxPath + "/archive", "archive_write", s.unpackSandbox},

		{get, sandboxPath + "/processes", "", s.listProcesses},
		{post, sandboxPath + "/processes", "process", s.startProcess},
		{get, processPath, "", s.getProcess},
		{del, processPath, "process_delete", s.deleteProcess},
		{get, processPath + "/output", "process_output", s.followProcess},
		{get, processPath + "/wait", "", s.waitProcess},
		{post, processPath + "/stdin", "process_stdin", s.writeProcess},
		{post, processPath + "/signal", "process_signal", s.signalProcess},
		{get, sandboxPath + "/terminal", "terminal", s.openTerminal},
	})
}

// place is which sandbox of whom a request is about.
type place struct {
	caller        *tenant.Principal
	session, name string
	query         url.Values
	trail         *trail // nil where no row is left
}

// onSandbox finds the caller, and which sandbox is meant. raw are parameters whose
// values are bytes.
func (s *Server) onSandbox(r *http.Request, raw []string, known ...string) (*place, error) {
	caller, err := s.authorize(r, tenant.ScopeSandboxes)
	if err != nil {
		return nil, err
	}
	q, err := parseQueryWith(r, raw, append(known, "session")...)
	if err != nil {
		return nil, err
	}
	p := &place{caller: caller, session: sandbox.Default, name: r.PathValue("sandbox"), query: q, trail: trailOf(r.Context())}
	if q.Has("session") {
		p.session = q.Get("session")
		if err := sandbox.CheckSession(p.session); err != nil { // also where an id makes it superfluous
			return nil, err
		}
	}
	if p.trail != nil {
		p.trail.by(caller, p.session, p.name)
		if sb, err := s.sandboxes.Get(r.Context(), caller, p.session, p.name); err == nil {
			p.trail.on(sb)
		}
	}
	return p, nil
}

// inSandbox runs f with a sandbox that it wakes.
func (s *Server) inSandbox(ctx context.Context, p *place, f func(h sandbox.Handle) error) error {
	h, err := s.sandboxes.Use(ctx, p.caller, p.session, p.name)
	if err != nil {
		return err
	}
	defer h.Close()
	if p.trail != nil {
		p.trail.on(h.Sandbox())
		p.trail.begun = true
	}
	err = f(h)
	if errors.Is(err, process.ErrGone) {
		if why := h.Stopped(ctx); why != nil {
			return why
		}
		return fault.Wrap(fault.Conflict, err, "the sandbox went away during the call, which may be done in part; GET "+sandboxesPath+"/"+string(h.Sandbox().ID)+" says whether it is there")
	}
	return err
}

func (s *Server) createSandbox(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeSandboxes)
	if err != nil {
		return err
	}
	var in NewSandbox
	if err := decodeRequest(w, r, &in); err != nil {
		return err
	}
	if in.Name == nil {
		return invalid("name is required")
	}
	session := sandbox.Default
	if in.Session != nil {
		session = *in.Session
	}
	if err := sandbox.CheckSession(session); err != nil {
		return err
	}
	t := trailOf(r.Context())
	t.by(caller, session, *in.Name)
	if in.Environment != nil && *in.Environment != caller.Environment.Name && *in.Environment != caller.Environment.ID {
		return fault.New(fault.Forbidden, "this key is bound to the environment %q, and can use no other", caller.Environment.Name)
	}
	spec, err := in.domain(caller)
	if err != nil {
		return err
	}
	if s.isDraining() {
		return fault.New(fault.Unavailable, "%s", errShutdown)
	}
	sb, created, err := s.sandboxes.Ensure(r.Context(), caller, session, *in.Name, spec)
	if err != nil {
		return err
	}
	t.on(sb)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", sandboxesPath+"/"+string(sb.ID))
	}
	return writeJSON(w, status, sandboxWire(sb))
}

func (in *NewSandbox) domain(caller *tenant.Principal) (*sandbox.Spec, error) {
	spec := &sandbox.Spec{Env: wire.StringMap(in.EnvVars)}
	if err := execution.CheckEnv(spec.Env); err != nil {
		return nil, err
	}
	if in.Image != nil {
		if spec.Image = *in.Image; spec.Image == "" {
			return nil, invalid("image must not be empty; leave it out for that of the key's environment")
		}
	}
	var err error
	if spec.SleepAfter, err = millis("sleep_after_ms", in.SleepAfterMS, -1); err != nil {
		return nil, err
	}
	if spec.Timeout, err = millis("timeout_ms", in.TimeoutMS, 1); err != nil {
		return nil, err
	}
	if in.Snapshot != nil {
		if spec.Snapshot = sandbox.SnapshotID(*in.Snapshot); !spec.Snapshot.Valid() {
			return nil, invalid("snapshot must be the snapshot_id of a snapshot, snap- and 16 hexadecimal digits")
		}
	}
	if spec.SubPaths, err = subPaths(in.SubPaths); err != nil {
		return nil, err
	}
	spec.FilesOnly = in.FilesOnly != nil && *in.FilesOnly
	if in.Network != nil {
		policy, err := in.Network.over(caller.Environment.Permissions.Network)
		if err != nil {
			return nil, err
		}
		spec.Network = &policy
	}
	return spec, nil
}

// millis reads a time in milliseconds that is at least least; 0 if it is left out.
func millis(name string, ms *Millis, least Millis) (time.Duration, error) {
	const most = Millis(365 * 24 * time.Hour / time.Millisecond)
	switch {
	case ms == nil:
		return 0, nil
	case *ms < least || *ms > most:
		return 0, invalid("%s must be a whole number from %d to %d", name, least, most)
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

// over is what c makes of a policy.
func (c *NetworkChange) over(p runtime.NetworkPolicy) (runtime.NetworkPolicy, error) {
	change, err := (&PermissionsChange{Network: c}).domain()
	if err != nil {
		return p, err
	}
	return change.NetworkOver(p)
}

func (s *Server) listSandboxes(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeSandboxes)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "session")
	if err != nil {
		return err
	}
	if q.Has("session") && q.Get("session") == "" {
		return invalid("session must not be empty; leave it out for all sessions")
	}
	list, err := s.sandboxes.List(r.Context(), caller, q.Get("session"))
	if err != nil {
		return err
	}
	body := SandboxList{Data: make([]Sandbox, len(list))}
	for i, sb := range list {
		body.Data[i] = sandboxWire(sb)
	}
	return writeJSON(w, http.StatusOK, body)
}

func (s *Server) getSandbox(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	sb, err := s.sandboxes.Get(r.Context(), p.caller, p.session, p.name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sandboxWire(sb))
}

func (s *Server) deleteSandbox(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	if err := s.sandboxes.Destroy(r.Context(), p.caller, p.session, p.name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// changed reads a request that changes a sandbox, and answers with it.
func changed[T any](s *Server, w http.ResponseWriter, r *http.Request, change func(p *place, in *T) (sandbox.Change, error)) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	var in T
	if err := decodeJSON(w, r, &in); err != nil {
		return err
	}
	c, err := change(p, &in)
	if err != nil {
		return err
	}
	sb, err := s.sandboxes.Update(r.Context(), p.caller, p.session, p.name, c)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sandboxWire(sb))
}

func (s *Server) putSandboxTimeout(w http.ResponseWriter, r *http.Request) error {
	return changed(s, w, r, func(_ *place, in *SandboxTimeout) (c sandbox.Change, err error) {
		if in.TimeoutMS == nil && in.SleepAfterMS == nil {
			return c, invalid("give timeout_ms, sleep_after_ms or both")
		}
		for _, f := range []struct {
			name  string
			from  *Millis
			least Millis
			to    **time.Duration
		}{{"timeout_ms", in.TimeoutMS, 0, &c.Timeout}, {"sleep_after_ms", in.SleepAfterMS, -1, &c.SleepAfter}} {
			if f.from != nil {
				d, err := millis(f.name, f.from, f.least)
				if err != nil {
					return c, err
				}
				*f.to = &d
			}
		}
		return c, nil
	})
}

func (s *Server) putSandboxNetwork(w http.ResponseWriter, r *http.Request) error {
	return changed(s, w, r, func(p *place, in *NetworkChange) (c sandbox.Change, err error) {
		policy, err := in.over(p.caller.Environment.Permissions.Network)
		return sandbox.Change{Network: &policy}, err
	})
}

func (s *Server) getSandboxMetrics(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	u, err := s.sandboxes.Usage(r.Context(), p.caller, p.session, p.name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, SandboxMetrics{CPUSeconds: u.CPUSeconds, MemoryBytes: u.Memory, PeakMemoryBytes: u.PeakMemory, DiskBytes: u.Disk, OOMKills: u.OOMKills})
}

func (s *Server) listOrphans(w http.ResponseWriter, r *http.Request) error {
	return s.orphans(w, r, s.sandboxes.Orphans)
}

func (s *Server) reapOrphans(w http.ResponseWriter, r *http.Request) error {
	return s.orphans(w, r, s.sandboxes.Reap)
}

func (s *Server) orphans(w http.ResponseWriter, r *http.Request, find func(context.Context) ([]runtime.ID, error)) error {
	caller, err := s.authorize(r, tenant.ScopeAdmin)
	if err != nil {
		return err
	}
	trailOf(r.Context()).by(caller, "", "")
	if _, err := parseQuery(r); err != nil {
		return err
	}
	ids, err := find(r.Context())
	if err != nil {
		return err
	}
	body := Orphans{Data: make([]string, len(ids))}
	for i, id := range ids {
		body.Data[i] = string(id)
	}
	return writeJSON(w, http.StatusOK, body)
}
