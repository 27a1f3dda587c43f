// Package container describes containers, by which OpenAI's clients know the sandboxes of
// code_interpreter: named sandboxes of one session, which are destroyed when they were not
// used for a time. All there is of a container is in the record of its sandbox.
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

// Session is the one that containers are in.
const Session = "containers"

// FileMode are the permissions of files that callers give a container. Those that programs
// write have others, so they say where a file is from.
const FileMode = 0o664

// variable keeps the Settings of a container. Callers cannot set it themselves.
const variable = execution.EnvPrefix + "CONTAINER"

// ID names a container: "cntr_" and the digits of its sandbox's id.
type ID string

const (
	prefix        = "cntr_"
	sandboxPrefix = "sb-"
)

// Pattern is what ids look like.
const Pattern = "^cntr_[0-9a-f]{16}$"

// IDOf is the container of a sandbox.
func IDOf(id runtime.ID) ID { return ID(prefix + strings.TrimPrefix(string(id), sandboxPrefix)) }

// Sandbox is the sandbox of a container. ok is false for what is no id.
func (id ID) Sandbox() (_ runtime.ID, ok bool) {
	digits, found := strings.CutPrefix(string(id), prefix)
	sb := runtime.ID(sandboxPrefix + digits)
	return sb, found && sb.Valid()
}

// Bounds of Settings.
const (
	DefaultMinutes = 20
	MaxMinutes     = 30 * 24 * 60
	MaxName        = 256 // characters
)

// Settings are what a container is made with, beside what its sandbox is.
type Settings struct {
	Name string `json:"name"`
	// Minutes without use after which it is destroyed.
	Minutes int `json:"minutes"`
}

// NewName is a name for the sandbox of a new container: that of the container need not be
// the only one.
func NewName() string { return "cntr-" + strings.ToLower(rand.Text()) }

// Spec is the sandbox of a container.
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

// Of returns the settings of a container. ok is false for a sandbox that is none.
func Of(sb *sandbox.Sandbox) (s Settings, ok bool) {
	if sb.Session != Session || json.Unmarshal([]byte(sb.Env[variable]), &s) != nil || s.Minutes < 1 {
		return s, false
	}
	return s, true
}

// Alive reports whether a container can be used.
func Alive(sb *sandbox.Sandbox) bool {
	return sb.State != sandbox.Lost && sb.State != sandbox.Destroyed
}

// Used is the change of a container that is used, and perhaps busy for a while: its time
// begins anew. No container outlives the plan's MaxSandboxLife.
func (s Settings) Used(p *tenant.Principal, sb *sandbox.Sandbox, busy time.Duration) sandbox.Change {
	left := s.life() + busy
	if most := p.Plan.MaxSandboxLife; most > 0 {
		left = min(left, time.Until(sb.CreatedAt.Add(most))-time.Second)
	}
	left = max(left, time.Second) // 0 is the longest there is
	return sandbox.Change{Timeout: &left}
}
