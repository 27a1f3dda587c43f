package process

import (
	"slices"
	"strings"
	"testing"
)

func TestIsolate(t *testing.T) {
	env := []string{
		"PATH=/home/user/.local/bin:.:/usr/bin::bin:/tmp/x:/opt/py/bin:/usr/../tmp", "HOME=/home/user", "LANG=C.UTF-8", "LC_ALL=C", "https_proxy=http://p", "KEY=k",
		"LD_PRELOAD=/home/user/x.so", "LD_LIBRARY_PATH=/opt/lib", "PYTHONPATH=/opt/a:lib", "PYTHONSTARTUP=x.py", "PYTHONHASHSEED=0", "NODE_OPTIONS=--require=/home/user/x.js", "NODE_PATH=/usr/local/lib/node_modules",
		"BASH_ENV=/tmp/x", "GIT_SSH_COMMAND=/home/user/ssh -v", "GIT_SSL_CAINFO=/etc/ssl/x", "GIT_EXEC_PATH=/dev/shm", "BASH_FUNC_git%%=() { :; }", "PERL5LIB=.", "SHELL=/bin/bash",
	}
	for i, want := range map[Isolation]string{
		Open:     strings.Join(env, "|"),
		Guarded:  "PATH=/usr/bin:/opt/py/bin|HOME=/home/user|LANG=C.UTF-8|LC_ALL=C|https_proxy=http://p|KEY=k|LD_LIBRARY_PATH=/opt/lib|PYTHONHASHSEED=0|NODE_PATH=/usr/local/lib/node_modules|GIT_SSL_CAINFO=/etc/ssl/x|SHELL=/bin/bash",
		Isolated: "PATH=/usr/bin:/opt/py/bin|HOME=/home/user|LANG=C.UTF-8|LC_ALL=C|https_proxy=http://p|GIT_SSL_CAINFO=/etc/ssl/x",
	} {
		if got := strings.Join(i.Isolate(slices.Clone(env)), "|"); got != want {
			t.Errorf("%d:\n%s\nwant\n%s", i, got, want)
		}
	}
	if got := Isolated.Isolate([]string{"PATH=/tmp", "KEY=k", "LD_PRELOAD=x"}, "KEY"); !slices.Equal(got, []string{"PATH=" + defaultPath, "KEY=k"}) {
		t.Error(got)
	}
}
