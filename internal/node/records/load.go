package records

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// formatVersion is the version of the file. Versions that can be read by older programs keep it.
const formatVersion = 1

// headerJSON begins a file.
type headerJSON struct {
	Version  int    `json:"version"`
	Executor string `json:"executor"`
	Journal  string `json:"journal"`
	Next     uint64 `json:"next"`            // number of the next event
	Adopt    bool   `json:"adopt,omitempty"` // see Journal.adopt
	// Frames that were written with the header. A file with fewer frames was damaged: a power failure
	// can only cut off later ones.
	Frames int `json:"frames"`
}

// load reads the file.
func (j *Journal) load() error {
	p, found, err := read(j.cfg.Dir)
	if err != nil {
		return err
	}
	if !found {
		j.adopt = true // the executor is new, or its folder was lost
		j.begin()
		return nil
	}
	damaged, headed, whole := p.bad > 0, false, 0
	for _, f := range p.frames {
		switch err := j.replay(f); {
		case err != nil && f.kind == header:
			return err
		case err != nil:
			damaged = true
			j.cfg.Log.Error("the journal of sandboxes has an entry that cannot be read", "folder", j.cfg.Dir, "error", err)
		case f.kind == header:
			headed, whole = true, 1+frameCount(f.payload)
		}
	}
	damaged = damaged || len(p.frames) < whole
	j.dropEnded()
	if damaged || !headed {
		j.reportDamage(p)
	}
	if p.torn > 0 && headed && !damaged {
		j.cfg.Log.Warn("the journal of sandboxes ends with an unfinished entry, which a power failure left; its change was never acknowledged",
			"folder", j.cfg.Dir, "bytes", p.torn)
	}
	if p.torn > 0 || damaged || !headed {
		j.adopt = true
		j.begin()
	}
	return nil
}

// begin begins a new journal: its events get numbers that no event of a lost journal had.
func (j *Journal) begin() {
	j.id = "jrn_" + strings.ToLower(rand.Text()[:16])
	j.next = max(j.next, uint64(time.Now().UnixMicro()))
}

// reportDamage keeps a copy of a damaged file for the operator.
func (j *Journal) reportDamage(p parsed) {
	to := filepath.Join(j.cfg.Dir, fileName+".damaged-"+time.Now().UTC().Format("20060102T150405.000"))
	err := os.Link(filepath.Join(j.cfg.Dir, fileName), to)
	j.cfg.Log.Error("the journal of sandboxes is damaged: the executor takes records that it cannot read from a gateway, and use that it had not reported is not charged. Check the disk",
		"copy", to, "bytes", p.bad+p.torn, "records", len(j.records), "events", len(j.pending), "copy_error", err)
}

// replay applies a frame to what earlier frames left.
func (j *Journal) replay(f frame) error {
	switch f.kind {
	case header:
		return j.replayHeader(f.payload)
	case kept:
		sb, err := sandbox.DecodeRecord(f.payload)
		if err != nil {
			return err
		}
		e := j.records[sb.ID]
		if e == nil {
			e = &entry{}
			j.records[sb.ID] = e
		}
		e.sb, e.asked = sb, false
	case dropped:
		delete(j.records, runtime.ID(f.payload))
	case asked:
		if e := j.records[runtime.ID(f.payload)]; e != nil {
			e.sb, e.asked = e.sb.Clone(), true
			e.sb.Revision = max(e.sb.Revision, f.seq)
		}
	case event:
		return j.replayEvent(f)
	case sent:
		j.forget(f.seq)
	default:
		return fmt.Errorf("unknown entry %q; it was written by a newer version", byte(f.kind))
	}
	return nil
}

func (j *Journal) replayHeader(b []byte) error {
	var h headerJSON
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("the journal in %q has no readable header; move the folder away: the executor then takes its records from a gateway", j.cfg.Dir)
	}
	if h.Version > formatVersion {
		return fmt.Errorf("the journal in %q was written by a newer version of Atoll; start that version", j.cfg.Dir)
	}
	if h.Executor != j.cfg.Executor {
		return fmt.Errorf("the journal in %q belongs to executor %q, and this is %q; restore the executor's id, or move the folder away", j.cfg.Dir, h.Executor, j.cfg.Executor)
	}
	j.id, j.next, j.adopt = h.Journal, max(j.next, h.Next), h.Adopt
	return nil
}

// frameCount returns the Frames of a header that replayHeader has read.
func frameCount(b []byte) int {
	var h headerJSON
	_ = json.Unmarshal(b, &h)
	return h.Frames
}

func (j *Journal) replayEvent(f frame) error {
	e, err := sandbox.DecodeEvent(f.payload)
	if err != nil {
		return err
	}
	of := j.records[e.Sandbox]
	if of != nil {
		of.apply(e)
	}
	p := &pending{seq: f.seq, sandbox: e.Sandbox, ends: destroys(e), data: slices.Clone(f.payload), begun: time.Now(), tried: true}
	if len(j.pending) == 0 || f.seq > j.pending[len(j.pending)-1].seq {
		j.pending = append(j.pending, p)
		j.bytes += int64(len(p.data))
		j.next = max(j.next, f.seq+1)
		if of != nil {
			of.last = p
		}
		return nil
	}
	i, there := slices.BinarySearchFunc(j.pending, f.seq, func(p *pending, seq uint64) int {
		return int(int64(p.seq) - int64(seq))
	})
	if there {
		j.bytes += int64(len(p.data) - len(j.pending[i].data))
		j.pending[i].data, j.pending[i].ends = p.data, p.ends
	}
	return nil
}

// apply makes the change of an event.
func (e *entry) apply(ev *sandbox.Event) {
	next := e.sb.Clone()
	switch {
	case ev.Save != nil:
		if ev.Save.Revision < next.Revision {
			return
		}
		next.CopySaved(ev.Save)
		e.asked = false
	case ev.Endings != nil:
		next.Endings = ev.Endings
	case ev.Charge != nil:
		if ev.Charge.Until.After(next.MeteredAt) {
			next.MeteredAt = ev.Charge.Until
		}
	}
	e.sb = next
}

// forget removes the events up to a number, which the bus stores. The caller holds mu or owns j alone.
func (j *Journal) forget(seq uint64) {
	for len(j.pending) > 0 && j.pending[0].seq <= seq {
		p := j.pending[0]
		j.pending[0] = nil
		j.pending = j.pending[1:]
		j.bytes -= int64(len(p.data))
		e := j.records[p.sandbox]
		if e == nil {
			continue
		}
		if e.last == p {
			e.last = nil
		}
		if p.ends {
			delete(j.records, p.sandbox)
		}
	}
}

// dropEnded drops destroyed sandboxes whose gateways know it.
func (j *Journal) dropEnded() {
	for id, e := range j.records {
		if e.sb.State == sandbox.Destroyed && !slices.ContainsFunc(j.pending, func(p *pending) bool { return p.ends && p.sandbox == id }) {
			delete(j.records, id)
		}
	}
}

// frames returns the content of a compacted file. mu is held.
func (j *Journal) frames() ([]frame, error) {
	all := []frame{{}} // for the header
	for _, id := range slices.Sorted(maps.Keys(j.records)) {
		e := j.records[id]
		b, err := sandbox.EncodeRecord(e.sb)
		if err != nil {
			return nil, err
		}
		all = append(all, frame{kind: kept, payload: b})
		if e.asked {
			all = append(all, frame{asked, e.sb.Revision, []byte(id)})
		}
	}
	for _, p := range j.pending {
		all = append(all, frame{event, p.seq, p.data})
	}
	b, err := json.Marshal(headerJSON{formatVersion, j.cfg.Executor, j.id, j.next, j.adopt, len(all) - 1})
	all[0] = frame{kind: header, payload: b}
	return all, err
}
