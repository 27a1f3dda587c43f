package storage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// MaxSubPaths limits the entries of a request's sub_paths.
const MaxSubPaths = 10

// SubPath is an entry of a request's sub_paths. It narrows one connection.
type SubPath struct {
	Slug string
	Path Path
}

// ParseSubPaths parses a request's sub_paths. Resolve checks them against the connections.
func ParseSubPaths(entries []string) ([]SubPath, error) {
	if len(entries) > MaxSubPaths {
		return nil, invalid("sub_paths must have at most %d entries", MaxSubPaths)
	}
	var out []SubPath
	for _, entry := range entries {
		p, err := parseSubPath(entry)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(other SubPath) bool { return other.Slug == p.Slug }) {
			return nil, invalid("sub_paths must have one entry per connection, but has several for %q", p.Slug)
		}
		out = append(out, p)
	}
	return out, nil
}

func parseSubPath(entry string) (SubPath, error) {
	const form = "sub_paths entry %s must have the form " + Root + "/{slug}/{path}, such as " + Root + "/company-data/reports"
	if utf8.RuneCountInString(entry) > MaxPath {
		return SubPath{}, invalid("sub_paths entry %s must be at most %d characters", quote(entry), MaxPath)
	}
	rest, ok := strings.CutPrefix(entry, Root+"/")
	if !ok {
		return SubPath{}, invalid(form, quote(entry))
	}
	slug, text, ok := strings.Cut(rest, "/")
	if !ok || !Slug.MatchString(slug) {
		return SubPath{}, invalid(form, quote(entry))
	}
	if text == "" {
		return SubPath{}, invalid("sub_paths entry %s names no folder: add one after %s, or omit the entry to mount everything that is allowed", quote(entry), Root+"/"+slug+"/")
	}
	if strings.HasPrefix(text, "/") {
		return SubPath{}, invalid("sub_paths entry %s must not have two slashes in a row: write one", quote(entry))
	}
	p, err := ParsePath("sub_paths entry "+quote(entry), text)
	return SubPath{Slug: slug, Path: p}, err
}

// Resolve returns the mounts of one execution. For each connection granted to its environment or
// key, it intersects the connection's prefix, the grants' prefixes and the request. Each level may
// only narrow the one before; otherwise Resolve returns an error and nothing runs.
func Resolve(grants []Granted, sub []SubPath) ([]Mount, error) {
	mounts := map[string]*Mount{}
	var slugs []string
	// A key's grant narrows its environment's of the same connection.
	byLevel := slices.SortedStableFunc(slices.Values(grants), func(a, b Granted) int {
		return strings.Compare(a.Grant.Key, b.Grant.Key)
	})
	for _, g := range byLevel {
		c := g.Connection
		m := mounts[c.Slug]
		if m == nil {
			m = &Mount{Slug: c.Slug, Connection: c.ID, Kind: c.Kind, Path: c.Prefix, ReadOnly: c.ReadOnly, Target: c.Target}
			mounts[c.Slug] = m
			slugs = append(slugs, c.Slug)
		}
		if g.Grant.Prefix != "" {
			if !g.Grant.Prefix.Within(m.Path) {
				return nil, fault.New(fault.Forbidden, "the connection %q cannot be mounted: the prefix %q of a grant is outside %q, which the level above allows; ask an administrator to change one of them",
					c.Slug, g.Grant.Prefix, m.Path)
			}
			m.Path = g.Grant.Prefix
		}
		m.ReadOnly = m.ReadOnly || g.Grant.ReadOnly
	}
	for _, s := range sub {
		m := mounts[s.Slug]
		if m == nil {
			return nil, invalid("sub_paths: this key does not mount the connection %q; %s", s.Slug, mounted(slugs))
		}
		if !s.Path.Within(m.Path) {
			return nil, invalid("sub_paths: %s/%s/%s is outside the part of %q that this key may see: use %s/%s/%s or a folder below it", Root, s.Slug, s.Path, s.Slug, Root, s.Slug, m.Path)
		}
		m.Path = s.Path
	}
	slices.Sort(slugs)
	out := make([]Mount, 0, len(slugs))
	for _, slug := range slugs {
		out = append(out, *mounts[slug])
	}
	return out, nil
}

// Narrow intersects mounts with by. It drops mounts that by does not allow at all.
func Narrow(mounts, by []Mount) []Mount {
	var out []Mount
	for _, m := range mounts {
		i := slices.IndexFunc(by, func(b Mount) bool { return b.Connection == m.Connection && b.Slug == m.Slug })
		if i < 0 {
			continue
		}
		if b := by[i]; !m.Path.Within(b.Path) {
			if !b.Path.Within(m.Path) {
				continue
			}
			m.Path = b.Path
		}
		m.ReadOnly = m.ReadOnly || by[i].ReadOnly
		out = append(out, m)
	}
	return out
}

func mounted(slugs []string) string {
	if len(slugs) == 0 {
		return "it mounts no connections, so omit sub_paths"
	}
	return "name one of " + strings.Join(slices.Sorted(slices.Values(slugs)), ", ")
}
