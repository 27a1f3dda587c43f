package cloudflare

import "testing"

func TestPathsOfTheWorkspace(t *testing.T) {
	for from, want := range map[string]string{
		"workspace": "/home/user", "workspace/a/./b": "/home/user/a/b", "home/user/a": "/home/user/a", "workspace/../home/user/a": "/home/user/a",
		"": "", "etc/passwd": "", "workspace/../etc/passwd": "", "workspaces": "", "home/user2/a": "", "workspace/../../..": "",
	} {
		if got, err := homeOf(from); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", from, got, err, want)
		}
	}
}
