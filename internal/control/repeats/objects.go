package repeats

import (
	"cmp"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// An answer is kept until an object that it is about is deleted. Objects are ids and names; a sandbox's
// name has its session before it.

// Object returns the object that a part of a path names: none for "". session is the session of the
// request, "" for the default one.
func Object(part, value, session string) []string {
	switch {
	case value == "":
		return nil
	case part == "sandbox" && !runtime.ID(value).Valid():
		return []string{cmp.Or(session, sandbox.Default) + "/" + value}
	default:
		return []string{value}
	}
}

// Objects returns the objects in a JSON answer.
func Objects(answer []byte) (all []string) {
	var of struct {
		ID        string `json:"id"`
		Slug      string `json:"slug"`
		Sandbox   string `json:"sandbox_id"`
		Session   string `json:"session"`
		Name      string `json:"name"`
		Trace     string `json:"trace_id"`
		Snapshot  string `json:"snapshot_id"`
		Process   string `json:"process_id"`
		Container string `json:"container_id"`
	}
	if json.Unmarshal(answer, &of) != nil {
		return nil
	}
	if of.Sandbox != "" && of.Name != "" {
		all = append(all, cmp.Or(of.Session, sandbox.Default)+"/"+of.Name)
	}
	for _, id := range []string{of.ID, of.Slug, of.Sandbox, of.Trace, of.Snapshot, of.Process, of.Container} {
		if id != "" {
			all = append(all, id)
		}
	}
	return all
}
