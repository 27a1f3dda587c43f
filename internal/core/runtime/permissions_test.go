package runtime

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPermissionsThatCannotBe(t *testing.T) {
	host := func(h ...string) Permissions {
		return Permissions{Network: NetworkPolicy{Mode: NetworkRules, AllowedHosts: h}}
	}
	files := func(writable, readOnly, blocked []string) Permissions {
		return Permissions{Filesystem: FilesystemPolicy{writable, readOnly, blocked}}
	}
	commands := func(c ...string) Permissions { return Permissions{Process: ProcessPolicy{BlockedCommands: c}} }
	for _, c := range []struct {
		name string
		p    Permissions
		want string // in the message; "" for none
	}{
		{"nothing", Permissions{}, ""},
		{"hosts", host("*", "example.com", "*.example.com", "xn--mnchen-3ya.de", "a_b.example.com", "localhost"), ""},
		{"a scheme", host("https://example.com"), "without scheme"},
		{"a port", host("example.com:443"), "without scheme"},
		{"capitals", host("Example.com"), "lower case"},
		{"a trailing dot", host("example.com."), "host name"},
		{"an address", host("10.0.0.1"), "allowed_cidrs"},
		{"an IPv6 address", host("[::1]"), "allowed_cidrs"},
		{"a decimal address", host("2130706433"), "number"},
		{"an octal address", host("0177.0.0.1"), "number"},
		{"a star inside", host("a.*.com"), "host name"},
		{"a NUL", host("a\x00.com"), "host name"},
		{"too many", host(strings.Split(strings.Repeat("a,", 101), ",")...), "limit is 100"},
		{"a range with bits", Permissions{Network: NetworkPolicy{AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}}}, "after the prefix"},
		{"port 0", Permissions{Network: NetworkPolicy{BlockedPorts: []uint16{0}}}, "1 to 65535"},
		{"a mode", Permissions{Network: NetworkPolicy{Mode: "open"}}, "unknown mode"},
		{"paths", files([]string{"/home/user", "/tmp"}, []string{"/data", "/home/user/ref", "/dev/shm"}, []string{"/etc/shadow", "/root", "/home/user/x"}), ""},
		{"everywhere", files([]string{"/"}, nil, nil), ""},
		{"a relative path", files([]string{"tmp"}, nil, nil), "absolute"},
		{"a path with ..", files(nil, []string{"/tmp/../etc"}, nil), "as \"/etc\""},
		{"a path with a slash", files(nil, nil, []string{"/root/"}), "as \"/root\""},
		{"a path with a newline", files(nil, nil, []string{"/a\nb"}), "control"},
		{"a long path", files([]string{"/" + strings.Repeat("a", 1024)}, nil, nil), "1024"},
		{"the root", files(nil, nil, []string{"/"}), "covers every path"},
		{"the guest", files(nil, nil, []string{"/.atoll"}), "belongs to the sandbox"},
		{"/proc", files(nil, []string{"/proc/sys"}, nil), "belongs to the sandbox"},
		{"/dev", files(nil, []string{"/dev"}, nil), "/dev/shm"},
		{"open below blocked", files([]string{"/root/x"}, nil, []string{"/root"}), "below the blocked path"},
		{"the home", files(nil, nil, []string{"/home"}), "contains the home"},
		{"commands", commands("shutdown", "rm -rf /", "/usr/bin/dd"), ""},
		{"no command", commands("  "), "1 to 1024"},
		{"two lines", commands("a\nb"), "one line"},
		{"processes", Permissions{Process: ProcessPolicy{MaxProcesses: -1}}, "max_processes"},
	} {
		err := c.p.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func FuzzPermissions(f *testing.F) {
	f.Add("*.example.com", "/home/user", "rm -rf /")
	f.Add("1.2.3.4", "/a/../b", "")
	f.Fuzz(func(t *testing.T, host, name, command string) {
		p := Permissions{
			Network:    NetworkPolicy{Mode: NetworkRules, AllowedHosts: []string{host}},
			Filesystem: FilesystemPolicy{Writable: []string{name}, Blocked: []string{"/root"}},
			Process:    ProcessPolicy{BlockedCommands: []string{command}},
		}
		if p.Validate() != nil {
			return
		}
		if strings.ContainsAny(host, "/:@ \x00") || !strings.HasPrefix(name, "/") || strings.Contains(name+"/", "/../") || strings.TrimSpace(command) == "" {
			t.Errorf("%q, %q and %q are valid", host, name, command)
		}
	})
}

func TestWhatIsWithinAPolicy(t *testing.T) {
	rules := func(hosts string, ports ...uint16) NetworkPolicy {
		return NetworkPolicy{Mode: NetworkRules, AllowedHosts: strings.Fields(hosts), BlockedPorts: ports}
	}
	cidr := func(c string) NetworkPolicy {
		return NetworkPolicy{Mode: NetworkRules, AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix(c)}}
	}
	open := NetworkPolicy{Mode: NetworkUnrestricted}
	for _, c := range []struct {
		name string
		p, o NetworkPolicy
		want bool
	}{
		{"nothing in nothing", NetworkPolicy{}, NetworkPolicy{}, true},
		{"nothing in all", NetworkPolicy{Mode: NetworkBlocked}, open, true},
		{"something in nothing", rules("a.test"), NetworkPolicy{}, false},
		{"all in rules", open, rules("*"), false},
		{"rules in all", rules("*"), open, true},
		{"a name", rules("a.test"), rules("b.test a.test"), true},
		{"another name", rules("c.test"), rules("b.test a.test"), false},
		{"below a wildcard", rules("x.a.test *.x.a.test *.a.test"), rules("*.a.test"), true},
		{"the wildcard's own name", rules("a.test"), rules("*.a.test"), false},
		{"a name that ends alike", rules("xa.test"), rules("*.a.test"), false},
		{"a wildcard in a name", rules("*.a.test"), rules("a.test"), false},
		{"every name in some", rules("*"), rules("*.test"), false},
		{"a smaller range", cidr("10.1.0.0/16"), cidr("10.0.0.0/8"), true},
		{"a larger range", cidr("10.0.0.0/8"), cidr("10.1.0.0/16"), false},
		{"a range beside", cidr("11.0.0.0/16"), cidr("10.0.0.0/8"), false},
		{"a range among names", cidr("10.0.0.0/8"), rules("*"), false},
		{"more blocked ports", rules("a.test", 22, 25), rules("a.test", 22), true},
		{"fewer blocked ports", rules("a.test", 25), rules("a.test", 22), false},
		{"a blocked port of an open network", rules("a.test"), NetworkPolicy{Mode: NetworkUnrestricted, BlockedPorts: []uint16{25}}, false},
	} {
		if got := c.p.Within(c.o); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestWhatTwoPoliciesAllow(t *testing.T) {
	rules := func(hosts, cidrs string, ports ...uint16) NetworkPolicy {
		p := NetworkPolicy{Mode: NetworkRules, BlockedPorts: ports}
		if hosts != "" {
			p.AllowedHosts = strings.Fields(hosts)
		}
		for _, c := range strings.Fields(cidrs) {
			p.AllowedCIDRs = append(p.AllowedCIDRs, netip.MustParsePrefix(c))
		}
		return p
	}
	blocked := NetworkPolicy{Mode: NetworkBlocked}
	open := NetworkPolicy{Mode: NetworkUnrestricted}
	without := NetworkPolicy{Mode: NetworkUnrestricted, BlockedPorts: []uint16{25}}
	for _, c := range []struct {
		name       string
		p, o, want NetworkPolicy
	}{
		{"nothing", NetworkPolicy{}, open, blocked},
		{"all", open, open, open},
		{"rules in all", rules("a.test", "10.0.0.0/8"), open, rules("a.test", "10.0.0.0/8")},
		{"rules in all but a port", rules("a.test", "", 22), without, rules("a.test", "", 22, 25)},
		{"all but a port", open, without, without},
		{"one of its hosts taken away", rules("a.test b.test", ""), rules("b.test c.test", ""), rules("b.test", "")},
		{"none left", rules("a.test", ""), rules("b.test", ""), rules("", "")},
		{"a name below a wildcard", rules("*.a.test", ""), rules("x.a.test x.b.test", ""), rules("x.a.test", "")},
		{"a wildcard below a wildcard", rules("*.a.test *", ""), rules("*.x.a.test", ""), rules("*.x.a.test", "")},
		{"the narrower range", rules("", "10.0.0.0/8 192.168.0.0/16"), rules("", "10.1.0.0/16 11.0.0.0/8"), rules("", "10.1.0.0/16")},
		{"names and ranges", rules("*", ""), rules("", "10.0.0.0/8"), rules("", "")},
	} {
		for _, got := range []NetworkPolicy{c.p.And(c.o), c.o.And(c.p)} {
			if !got.Within(c.want) || !c.want.Within(got) {
				t.Errorf("%s: %+v", c.name, got)
			}
			if !got.Within(c.p) || !got.Within(c.o) {
				t.Errorf("%s: %+v is more than one of them", c.name, got)
			}
		}
	}
}
