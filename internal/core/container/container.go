// Package container describes containers: OpenAI's view of the sandboxes of code_interpreter. A
// container is a named sandbox in one session, which Atoll destroys after a period without use. The
// sandbox's record holds all of a container's state.
package container

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Session is the session that holds every container.
const Session = "containers"

// FileMode is the mode of files that callers upload. Files that programs write have other modes, so
// the mode shows where a file comes from.
const FileMode = 0o664

// variable names the variable that stores the Settings of a container. Callers cannot set it.
const variable = execution.EnvPrefix + "CONTAINER"

// ID names a container: "cntr_" and the digits of its sandbox's id.
type ID string

const (
	prefix        = "cntr_"
	sandboxPrefix = "sb-"
)

// Pattern matches container ids.
const Pattern = "^cntr_[0-9a-f]{16}$"

// IDOf returns the container id of a sandbox.
func IDOf(id runtime.ID) ID { return ID(prefix + strings.TrimPrefix(string(id), sandboxPrefix)) }

// Sandbox returns the sandbox id of a container; ok is false if the id is malformed.
func (id ID) Sandbox() (_ runtime.ID, ok bool) {
	digits, found := strings.CutPrefix(string(id), prefix)
	sb := runtime.ID(sandboxPrefix + digits)
	return sb, found && sb.Valid()
}

// Limits of Settings.
const (
	DefaultMinutes = 20
	MaxMinutes     = 30 * 24 * 60
)

// Settings are the container's settings that its sandbox does not hold elsewhere.
type Settings struct {
	Name string `json:"name"`
	// Minutes is how long a container may stay unused before Atoll destroys it.
	Minutes int `json:"minutes"`
}

// NewName returns a random name for a new container's sandbox, because container names need not be
// unique.
func NewName() string { return "cntr-" + strings.ToLower(rand.Text()) }

// Spec returns the sandbox spec of a container. The plan's MaxSandboxLife limits its timeout.
func (s Settings) Spec(p *tenant.Principal) (*sandbox.Spec, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	spec := &sandbox.Spec{Env: map[string]string{variable: string(text)}, Timeout: s.life()}
	if most := p.Plan.MaxSandboxLife; most > 0 {
		spec.Timeout = min(spec.Timeout, most)
	}
	return spec, nil
}

func (s Settings) life() time.Duration { return time.Duration(s.Minutes) * time.Minute }

// Of returns the settings of a container; ok is false if sb is not a container.
func Of(sb *sandbox.Sandbox) (s Settings, ok bool) {
	if sb.Session != Session || json.Unmarshal([]byte(sb.Env[variable]), &s) != nil || s.Minutes < 1 {
		return s, false
	}
	return s, true
}

// Alive reports whether a container is usable.
func Alive(sb *sandbox.Sandbox) bool {
	return sb.State != sandbox.Lost && sb.State != sandbox.Destroyed
}

// Used returns the change that restarts a container's idle timeout on use and adds busy to it. No
// container outlives the plan's MaxSandboxLife.
func (s Settings) Used(p *tenant.Principal, sb *sandbox.Sandbox, busy time.Duration) sandbox.Change {
	left := s.life() + busy
	if most := p.Plan.MaxSandboxLife; most > 0 {
		left = min(left, time.Until(sb.CreatedAt.Add(most))-time.Second)
	}
	left = max(left, time.Second) // 0 is the longest there is
	return sandbox.Change{Timeout: &left}
}
