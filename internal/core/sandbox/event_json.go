package sandbox

import (
	"encoding/json"
	"maps"
	"regexp"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Events on the bus and records in journals are JSON. A reader ignores fields that it does not know,
// so that neighbouring versions work together. A name never gets another meaning.

// tokenPattern matches ids of journals and names of states in the blob store.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

type eventJSON struct {
	Journal string       `json:"journal"`
	Sandbox runtime.ID   `json:"sandbox"`
	Save    *savedJSON   `json:"save,omitempty"`
	Endings []endingJSON `json:"endings,omitempty"`
	Charge  *chargeJSON  `json:"charge,omitempty"`
	Contact *contactJSON `json:"contact,omitempty"`
	Discard bool         `json:"discard,omitempty"`
}

// savedJSON has the fields that CopySaved copies.
type savedJSON struct {
	Revision     uint64      `json:"revision"`
	State        State       `json:"state"`
	Sleep        Sleep       `json:"sleep,omitempty"`
	Stored       *storedJSON `json:"stored,omitempty"`
	Detail       string      `json:"detail,omitempty"`
	Image        string      `json:"image"`
	ImageWarning string      `json:"image_warning,omitempty"`
	Limits       limitsJSON  `json:"limits"`
	Disk         int64       `json:"disk,omitempty"`
	// The fields of Permissions keep their names in Go. A list that is null differs from an empty one.
	Permissions runtime.Permissions `json:"permissions"`
	Connected   bool                `json:"connected,omitempty"`
	Mounts      []mountJSON         `json:"mounts,omitempty"`
	SleepAfter  time.Duration       `json:"sleep_after"` // nanoseconds
	UsedAt      time.Time           `json:"used_at"`
	ExpiresAt   *time.Time          `json:"expires_at,omitempty"`
}

// recordJSON is a whole record. A machine keeps it; gateways never get it.
type recordJSON struct {
	savedJSON
	ID          runtime.ID        `json:"id"`
	Tenant      tenant.ID         `json:"tenant"`
	Environment string            `json:"environment"`
	Session     string            `json:"session"`
	Name        string            `json:"name"`
	Key         string            `json:"key"`
	Executor    string            `json:"executor"`
	ImageAlias  string            `json:"image_alias,omitempty"`
	Own         sizeJSON          `json:"own,omitzero"`
	Env         map[string]string `json:"env,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	MeteredAt   time.Time         `json:"metered_at"`
	Endings     []endingJSON      `json:"endings,omitempty"`
}

type storedJSON struct {
	State      string `json:"state"`
	Bytes      int64  `json:"bytes"`
	Disk       int64  `json:"disk"`
	Checkpoint bool   `json:"checkpoint,omitempty"`
	Kernel     string `json:"kernel,omitempty"`
	Image      string `json:"image,omitempty"`
}

type limitsJSON struct {
	CPU       float64 `json:"cpu"`
	Memory    int64   `json:"memory"`
	Processes int     `json:"processes"`
	OpenFiles int     `json:"open_files"`
	Root      int64   `json:"root"`
	Tmp       int64   `json:"tmp"`
	Shm       int64   `json:"shm"`
	Inodes    int     `json:"inodes"`
}

type sizeJSON struct {
	CPU    float64 `json:"cpu"`
	Memory int64   `json:"memory"`
	Disk   int64   `json:"disk"`
}

type mountJSON struct {
	Slug       string       `json:"slug"`
	Connection string       `json:"connection"`
	Kind       storage.Kind `json:"kind"`
	Path       storage.Path `json:"path,omitempty"`
	ReadOnly   bool         `json:"read_only,omitempty"`
}

type endingJSON struct {
	From      time.Time `json:"from"`
	Until     time.Time `json:"until,omitzero"`
	Reason    string    `json:"reason"`
	Dimension string    `json:"dimension,omitempty"`
}

type chargeJSON struct {
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	CPU      float64   `json:"cpu"`
	Memory   int64     `json:"memory"`
	BytesOut int64     `json:"bytes_out,omitempty"`
}

type contactJSON struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Hosts []string  `json:"hosts"`
}

// Encode returns the event as gateways read it. It returns an Invalid fault for an event that
// DecodeEvent would reject.
func (e *Event) Encode() ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	out := eventJSON{Journal: e.Journal, Sandbox: e.Sandbox, Charge: (*chargeJSON)(e.Charge), Contact: (*contactJSON)(e.Contact), Discard: e.Discard}
	if e.Save != nil {
		out.Save = new(savedOf(e.Save))
	}
	if e.Endings != nil {
		out.Endings = endingsJSON(e.Endings)
	}
	b, err := json.Marshal(out)
	if err == nil && len(b) > MaxEvent {
		err = badReport("it is too large")
	}
	return b, err
}

// DecodeEvent decodes an event. It returns an Invalid fault for anything that Encode does not return.
func DecodeEvent(b []byte) (*Event, error) {
	if len(b) > MaxEvent {
		return nil, badReport("it is too large")
	}
	var in eventJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, badReport("it cannot be read")
	}
	e := &Event{
		Journal: in.Journal, Sandbox: in.Sandbox, Endings: endingsFrom(in.Endings),
		Charge: (*Charge)(in.Charge), Contact: (*Contact)(in.Contact), Discard: in.Discard,
	}
	if in.Save != nil {
		e.Save = &Sandbox{}
		in.Save.into(e.Save)
	}
	return e, e.Check()
}

// EncodeRecord returns a whole record, with the variables of its programs and without credentials of
// its mounts. Keep it on the sandbox's machine.
func EncodeRecord(s *Sandbox) ([]byte, error) {
	return json.Marshal(recordJSON{
		savedJSON: savedOf(s), ID: s.ID, Tenant: s.Tenant, Environment: s.Environment, Session: s.Session, Name: s.Name, Key: s.Key,
		Executor: s.Executor, ImageAlias: s.ImageAlias, Own: sizeJSON(s.Own), Env: s.Env, CreatedAt: s.CreatedAt, MeteredAt: s.MeteredAt,
		Endings: endingsJSON(s.Endings),
	})
}

// DecodeRecord decodes a record of EncodeRecord.
func DecodeRecord(b []byte) (*Sandbox, error) {
	var in recordJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, badReport("a record cannot be read")
	}
	s := &Sandbox{
		ID: in.ID, Tenant: in.Tenant, Environment: in.Environment, Session: in.Session, Name: in.Name, Key: in.Key, Executor: in.Executor,
		ImageAlias: in.ImageAlias, Own: Size(in.Own), Env: maps.Clone(in.Env), CreatedAt: in.CreatedAt, MeteredAt: in.MeteredAt, Endings: endingsFrom(in.Endings),
	}
	in.into(s)
	if !s.ID.Valid() {
		return nil, badReport("a record has no valid id")
	}
	return s, s.CheckSaved()
}

func savedOf(s *Sandbox) savedJSON {
	out := savedJSON{
		Revision: s.Revision, State: s.State, Sleep: s.Sleep, Stored: (*storedJSON)(s.Stored), Detail: s.Detail,
		Image: s.Image, ImageWarning: s.ImageWarning, Limits: limitsJSON(s.Limits), Disk: s.Disk, Permissions: s.Permissions,
		Connected: s.Connected, SleepAfter: s.SleepAfter, UsedAt: s.UsedAt, ExpiresAt: s.ExpiresAt,
	}
	for _, m := range s.Mounts {
		out.Mounts = append(out.Mounts, mountJSON{m.Slug, m.Connection, m.Kind, m.Path, m.ReadOnly})
	}
	return out
}

func (in *savedJSON) into(s *Sandbox) {
	s.Revision, s.State, s.Sleep, s.Stored, s.Detail = in.Revision, in.State, in.Sleep, (*StoredCopy)(in.Stored), in.Detail
	s.Image, s.ImageWarning, s.Limits, s.Disk, s.Permissions = in.Image, in.ImageWarning, runtime.Limits(in.Limits), in.Disk, in.Permissions
	s.Connected, s.SleepAfter, s.UsedAt, s.ExpiresAt = in.Connected, in.SleepAfter, in.UsedAt, in.ExpiresAt
	for _, m := range in.Mounts {
		s.Mounts = append(s.Mounts, storage.Mount{Slug: m.Slug, Connection: m.Connection, Kind: m.Kind, Path: m.Path, ReadOnly: m.ReadOnly})
	}
}

func endingsJSON(endings []Ending) []endingJSON {
	var out []endingJSON
	for _, e := range endings {
		out = append(out, endingJSON(e))
	}
	return out
}

func endingsFrom(in []endingJSON) []Ending {
	var out []Ending
	for _, e := range in {
		out = append(out, Ending(e))
	}
	return out
}
