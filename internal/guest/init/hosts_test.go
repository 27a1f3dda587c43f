package guestinit

import "testing"

func TestAHostNameIsInTheHostsFile(t *testing.T) {
	const own = "10.0.0.7 db # ours\n"
	for _, test := range []struct{ text, before, want string }{
		{"", "", localHosts + "127.0.0.1 box\n"},
		{"127.0.0.1 localhost atoll\n", "atoll", "127.0.0.1 localhost atoll\n127.0.0.1 box\n"},
		{own + "127.0.0.1 parent\n", "parent", own + "127.0.0.1 box\n"},
		{own + "127.0.0.1 box\n", "box", own + "127.0.0.1 box\n"},
		{own + "127.0.0.1 parent\n127.0.0.1 box\n", "parent", own + "127.0.0.1 box\n"},
		{"# box\n::1 localhost", "", "# box\n::1 localhost\n127.0.0.1 box\n"},
		{"127.0.1.1 box.example box\n", "", "127.0.1.1 box.example box\n"},
	} {
		got, changed := withHost(test.text, "box", test.before)
		if got != test.want || changed != (got != test.text) {
			t.Errorf("%q after %q became %q (%t)", test.text, test.before, got, changed)
		}
	}
}
