package daemon

import "testing"

func TestFoldersThatAreFar(t *testing.T) {
	const usual = `1 0 0:1 / / rw - overlay none rw
2 1 0:2 / /dev rw - devtmpfs none rw
3 2 0:3 / /dev/pts rw - devpts none rw
4 1 0:4 / /home/user rw - 9p none rw
5 1 0:5 / /.attend ro - 9p none rw
6 1 0:6 / /.atoll ro - erofs none ro
7 1 0:7 / /var/tmp rw - 9p none rw
`
	for _, c := range []struct {
		name, mounts string
		far          bool
	}{
		{"the usual ones", usual, false},
		{"none", "", false},
		{"a bucket", usual + "8 1 0:8 / /data/b rw - 9p none rw\n", true},
		{"one below the home", usual + "8 4 0:8 / /home/user/data rw - 9p none rw\n", false},
		{"a name that begins like one", usual + "8 1 0:8 / /devices rw - 9p none rw\n", true},
		{"what is none", usual + "8 1\n", true},
	} {
		if got := areFar(c.mounts); got != c.far {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
