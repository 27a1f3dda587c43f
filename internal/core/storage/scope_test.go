package storage

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func connection(slug string, prefix Path) Connection {
	return Connection{ID: "con_" + slug, Slug: slug, Kind: Volume, Prefix: prefix}
}

func grant(c Connection, prefix Path, key bool) Granted {
	g := Grant{Connection: c.ID, Prefix: prefix}
	if key {
		g.Key = "key_1"
	} else {
		g.Environment = "env_1"
	}
	return Granted{g, c}
}

// see returns what a request sees, as "slug=path slug=path".
func see(grants []Granted, entries ...string) (string, error) {
	sub, err := ParseSubPaths(entries)
	if err != nil {
		return "", err
	}
	mounts, err := Resolve(grants, sub)
	if err != nil {
		return "", err
	}
	var out []string
	for _, m := range mounts {
		out = append(out, m.Slug+"="+string(m.Path))
	}
	return strings.Join(out, " "), nil
}

func TestScoping(t *testing.T) {
	company, bounded, team := connection("company-data", ""), connection("company-data", "reports"), connection("team", "")
	for _, c := range []struct {
		name   string
		grants []Granted
		sub    []string
		want   string // or, with a leading "!", part of the refusal
	}{
		{"the contract's first example", []Granted{grant(company, "", true)}, []string{"/data/company-data/reports/q1-2026"}, "company-data=reports/q1-2026"},
		{"the contract's full request", []Granted{grant(company, "", true)}, []string{"/data/company-data/customers"}, "company-data=customers"},
		{"without sub_paths all that is allowed", []Granted{grant(company, "", true)}, nil, "company-data="},
		{"nothing granted, nothing asked for", nil, nil, ""},
		{"one slash at the end", []Granted{grant(company, "", true)}, []string{"/data/company-data/reports/"}, "company-data=reports"},
		{"a connection's prefix", []Granted{grant(bounded, "", true)}, nil, "company-data=reports"},
		{"below a connection's prefix", []Granted{grant(bounded, "", true)}, []string{"/data/company-data/reports/q1"}, "company-data=reports/q1"},
		{"a connection's prefix itself", []Granted{grant(bounded, "", true)}, []string{"/data/company-data/reports"}, "company-data=reports"},
		{"beside a connection's prefix", []Granted{grant(bounded, "", true)}, []string{"/data/company-data/secrets"}, "!that this key may see"},
		{"above a connection's prefix", []Granted{grant(connection("company-data", "a/b"), "", true)}, []string{"/data/company-data/a"}, "!that this key may see"},
		{"a name that begins alike", []Granted{grant(bounded, "", true)}, []string{"/data/company-data/reports-old"}, "!use /data/company-data/reports or"},
		{"a name that is shorter", []Granted{grant(bounded, "", true)}, []string{"/data/company-data/report"}, "!outside"},
		{"another case", []Granted{grant(bounded, "", true)}, []string{"/data/company-data/Reports"}, "!outside"},
		{"a key's prefix", []Granted{grant(bounded, "reports/q1", true)}, nil, "company-data=reports/q1"},
		{"below a key's prefix", []Granted{grant(bounded, "reports/q1", true)}, []string{"/data/company-data/reports/q1/eu"}, "company-data=reports/q1/eu"},
		{"beside a key's prefix", []Granted{grant(bounded, "reports/q1", true)}, []string{"/data/company-data/reports/q2"}, "!outside"},
		{"above a key's prefix", []Granted{grant(bounded, "reports/q1", true)}, []string{"/data/company-data/reports"}, "!outside"},
		{"a key's prefix wider than the connection's", []Granted{grant(bounded, "other", true)}, nil, "!is outside"},
		{"a key's prefix beside, alike", []Granted{grant(bounded, "reports2", true)}, nil, "!is outside"},
		{"environment and key", []Granted{grant(company, "a/b", true), grant(company, "a", false)}, nil, "company-data=a/b"},
		{"a key cannot widen its environment", []Granted{grant(company, "a", true), grant(company, "a/b", false)}, nil, "!is outside"},
		{"a key without a prefix leaves its environment's", []Granted{grant(company, "", true), grant(company, "a", false)}, nil, "company-data=a"},
		{"several connections", []Granted{grant(team, "", false), grant(company, "", true)}, []string{"/data/team/x"}, "company-data= team=x"},
		{"each narrowed", []Granted{grant(team, "", false), grant(company, "", true)}, []string{"/data/team/x", "/data/company-data/y"}, "company-data=y team=x"},
		{"two entries of one connection", []Granted{grant(team, "", false)}, []string{"/data/team/x", "/data/team/y"}, "!one entry per connection"},
		{"a connection that is not mounted", []Granted{grant(team, "", false)}, []string{"/data/other/x"}, "!name one of team"},
		{"a connection where none is mounted", nil, []string{"/data/other/x"}, "!omit sub_paths"},
		{"names in Unicode", []Granted{grant(team, "", false)}, []string{"/data/team/Übersicht/報告（2026）"}, "team=Übersicht/報告（2026）"},
		{"names with dots and spaces", []Granted{grant(team, "", false)}, []string{"/data/team/.hidden/a b/v1.2.tar.gz"}, "team=.hidden/a b/v1.2.tar.gz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := see(c.grants, c.sub...)
			if part, refused := strings.CutPrefix(c.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Fatalf("got %q, %v; want a refusal with %q", got, err, part)
				}
				if len(c.sub) > 0 && fault.KindOf(err) != fault.Invalid {
					t.Errorf("%v is no validation error", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestReadOnlyOnAnyLevelIsReadOnly(t *testing.T) {
	for bits := range 8 {
		c := connection("team", "")
		c.ReadOnly = bits&1 != 0
		e, k := grant(c, "", false), grant(c, "", true)
		e.Grant.ReadOnly, k.Grant.ReadOnly = bits&2 != 0, bits&4 != 0
		m, err := Resolve([]Granted{k, e}, nil)
		if err != nil || len(m) != 1 || m[0].ReadOnly != (bits != 0) {
			t.Errorf("%03b gives %+v, %v", bits, m, err)
		}
	}
}

// hostile are entries that must not get past ParseSubPaths, or see nothing but
// what lies below "safe".
var hostile = []string{
	"", "/", "data/team/safe", "/data", "/data/", "/data/team", "/data/team/", "/data//team/safe", "//data/team/safe",
	"/data/team//safe", "/data/team/safe//x", "/data/team/..", "/data/team/../other/safe", "/data/team/safe/..", "/data/team/safe/../..",
	"/data/team/safe/../../other", "/data/team/./safe", "/data/team/safe/.", "/data/team/...", "/data/team/safe/..../x", "/data/../etc/passwd",
	"/data/team/%2e%2e/other", "/data/team/%2E%2E%2Fother", "/data/team/safe%2f..%2f..", "/data/team/%252e%252e", "/data/team/safe%00", "/data/team/%c0%ae%c0%ae",
	`/data/team\..\b`, `/data/team/..\..`, `/data/team/safe\x`, `\data\team\safe`, "/data/team/safe\x00/x", "/data/team/safe\x00", "/data/team/safe\n", "/data/team/safe\r\n/x", "/data/team/\tsafe",
	"/data/team/\uff0e\uff0e", "/data/team/safe\uff0f..", "/data/team/\u2025", "/data/team/\u2024\u2024", "/data/team/safe\u2215x", "/data/team/safe\u2044..", "/data/team/safe\u29f5x", "/data/team/safe\ufe68x", "/data/team/\ufe52\ufe52", "/data/team/safe\uff3cx", "/data/team/\uff05\uff12\uff25",
	"/data/team/sa\u200bfe", "/data/team/\u202eefas", "/data/team/safe\ufeff", "/data/team/\u2066safe", "/data/team/cafe\u0301", "/data/team/\u1100\u1161", "/data/team/\u212b",
	"/data/team/ safe", "/data/team/safe ", "/data/team/\u00a0safe", "/data/team/.. ", "/data/team/ ..",
	"/data/TEAM/safe", "/data/Team/safe", "/data/te%61m/safe", "/data/team./safe", "/data/./safe", "/data/../safe", "/data/te\u0430m/safe", "/data/-team/safe", "/Data/team/safe", "/data/team:safe/x",
	"/data/team/" + strings.Repeat("a", 256), "/data/team/" + strings.Repeat("é", 128), "/data/team/" + strings.Repeat("a/", 260), "/data/team/\xff\xfe", "/data/team/\xc0\xae\xc0\xae/x", "/data/team/\xed\xa0\x80",
	"/data/team/saf", "/data/team/safe-not", "/data/team/safe2/x", "/data/team/SAFE/x", "/data/other/safe", "/home/user", "/etc/passwd", "file:///data/team/safe", "~/data/team/safe", "/data/team/*", "/data/team/safe\u0000",
}

func TestHostilePaths(t *testing.T) {
	if len(hostile) < 40 {
		t.Fatal("the table is too short")
	}
	granted := []Granted{grant(connection("team", "safe"), "", true)}
	for _, entry := range hostile {
		got, err := see(granted, entry)
		if err == nil {
			t.Errorf("%q sees %q", entry, got)
		} else if fault.KindOf(err) != fault.Invalid || len(err.Error()) > 700 {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestBoundsOfSubPaths(t *testing.T) {
	var grants []Granted
	var entries []string
	for i := range 11 {
		slug := fmt.Sprintf("c%d", i)
		grants = append(grants, grant(connection(slug, ""), "", true))
		entries = append(entries, "/data/"+slug+"/x")
	}
	if _, err := see(grants, entries[:10]...); err != nil {
		t.Error("10 entries:", err)
	}
	if _, err := see(grants, entries...); err == nil || !strings.Contains(err.Error(), "at most 10 entries") {
		t.Error("11 entries:", err)
	}
	long := "/data/c0/" + strings.Repeat("é/", 251) // 511 characters, 762 bytes
	if _, err := see(grants, long+"é"); err != nil {
		t.Error("512 characters:", err)
	}
	if _, err := see(grants, long+"éé"); err == nil || !strings.Contains(err.Error(), "at most 512 characters") {
		t.Error("513 characters:", err)
	}
}

func TestPrefixesOfAdministrators(t *testing.T) {
	for text, want := range map[string]Path{"": "", "a": "a", "a/": "a", "a/b": "a/b"} {
		if got, err := ParsePath("prefix", text); err != nil || got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"/", "/a", "a//b", "a//", "../a", "a/..", "a\x00", `a\b`, "%61", strings.Repeat("a", 513)} {
		if got, err := ParsePath("prefix", text); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

// FuzzSubPaths looks for an entry that sees something outside of the prefix, or
// means something else to a program that cleans or decodes it.
func FuzzSubPaths(f *testing.F) {
	for _, entry := range append([]string{"/data/team/safe/x", "/data/team/safe"}, hostile...) {
		f.Add(entry)
	}
	granted := []Granted{grant(connection("team", "safe"), "", true)}
	f.Fuzz(func(t *testing.T, entry string) {
		sub, err := ParseSubPaths([]string{entry})
		if err != nil {
			return
		}
		again, err := ParsePath("path", string(sub[0].Path))
		if err != nil || again != sub[0].Path {
			t.Fatalf("%q was let through and is refused again: %v", entry, err)
		}
		mounts, err := Resolve(granted, sub)
		if err != nil {
			return
		}
		p := string(mounts[0].Path)
		if p != "safe" && !strings.HasPrefix(p, "safe/") || path.Clean(p) != p {
			t.Fatalf("%q sees %q", entry, p)
		}
		if sub[0].Path != mounts[0].Path {
			t.Fatalf("%q is mounted as %q", entry, p)
		}
	})
}

func TestNarrow(t *testing.T) {
	of := func(labels ...string) (out []Mount) {
		for _, l := range labels {
			name, mode, _ := strings.Cut(l, ":")
			slug, path, _ := strings.Cut(name, "/")
			out = append(out, Mount{Slug: slug, Connection: "con_" + slug, Kind: Volume, Path: Path(path), ReadOnly: mode == "ro"})
		}
		return out
	}
	for _, c := range []struct{ mounts, by, want []Mount }{
		{of("a/:rw", "b/x:ro"), of("b/:rw", "a/:rw", "c/:rw"), of("a/:rw", "b/x:ro")},
		{of("a/:rw", "b/x:ro"), of("b/x:ro"), of("b/x:ro")},
		{of("a/x:rw"), of("a/:ro"), of("a/x:ro")},
		{of("a/:rw"), of("a/x:rw"), of("a/x:rw")},
		{of("a/x:rw"), of("a/xy:rw"), nil},
		{of("a/x/y:ro"), of("a/x:rw"), of("a/x/y:ro")},
		{of("a/:rw"), nil, nil},
		{nil, of("a/:rw"), nil},
	} {
		was := Labels(c.mounts)
		if got := Narrow(c.mounts, c.by); !slices.Equal(got, c.want) || !slices.Equal(Labels(c.mounts), was) {
			t.Errorf("%v by %v is %v", was, Labels(c.by), Labels(got))
		}
	}
	another := of("a/:rw")
	another[0].Connection = "con_other" // that has the slug now
	if got := Narrow(of("a/:rw"), another); len(got) > 0 {
		t.Errorf("another connection of that name lets %v be seen", got)
	}
}
