// Package idmap says which users and groups of the host the files of a
// sandbox's users belong to, where they lie on the host: in the folders that a
// sandbox mounts, and in saved homes.
//
// As root these are a range of their own, which is given neither to the machine's
// users nor, by default, to containers, so that a file that a program made is
// ids without an account on the host. In a user namespace they are the caller's subordinate ids.
package idmap

import (
	"fmt"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Base and Count are the range that is root's to give.
const (
	Base  = 524288
	Count = 65536
)

// Range maps the first Count ids of sandboxes to those of the host, as this
// process sees it, from Host on.
type Range struct{ Host, Count uint32 }

// ToHost returns the host's id for a sandbox's.
func (r Range) ToHost(id uint32) (uint32, bool) { return r.Host + id, id < r.Count }

// ToGuest returns the sandbox's id for one of the host's.
func (r Range) ToGuest(id uint32) (uint32, bool) {
	return id - r.Host, id >= r.Host && id-r.Host < r.Count
}

// Map is how users and groups are mapped.
type Map struct{ UID, GID Range }

// Find looks at the user namespace of this process. It fails, as
// sandbox.ErrUnsupported, where no user may own programs' files.
func Find() (Map, error) {
	uid, ok := find("/proc/self/uid_map", runtime.UID)
	gid, also := find("/proc/self/gid_map", runtime.GID)
	if os.Geteuid() != 0 || !ok || !also {
		return Map{}, fmt.Errorf("%w: programs' files outside of sandboxes would have no owner; grant subordinate ids "+
			"(usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER) or run as root", runtime.ErrUnsupported)
	}
	return Map{UID: uid, GID: gid}, nil
}

// find chooses the range in a namespace whose ids a map file lists.
func find(file string, user uint32) (Range, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Range{Host: Base, Count: Count}, true // a kernel without user namespaces has all ids
	}
	return choose(string(data), user)
}

// choose takes the range that is root's, or else the longest there is without
// the caller, if that holds the programs' user.
func choose(idMap string, user uint32) (best Range, ok bool) {
	for line := range strings.Lines(idMap) {
		var first, outside, count uint64
		if _, err := fmt.Sscan(line, &first, &outside, &count); err != nil {
			continue
		}
		end := first + count
		if first <= Base && end >= Base+Count {
			return Range{Host: Base, Count: Count}, true
		}
		if first == 0 { // never the caller
			first++
		}
		if end > first && end-first > uint64(best.Count) {
			best = Range{Host: uint32(first), Count: uint32(min(end-first, Count))}
		}
	}
	return best, best.Count > user
}
