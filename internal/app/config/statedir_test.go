package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDefaultStateDir(t *testing.T) {
	a, b := DefaultStateDir("/data/a"), DefaultStateDir("/data/b")
	if a == b {
		t.Errorf("two data folders share %s", a)
	}
	if again := DefaultStateDir("/data/a"); again != a {
		t.Errorf("%s, then %s", a, again)
	}
	if os.Geteuid() == 0 && !inUserNamespace() && (inMemory("/run") || inMemory("/dev/shm")) {
		if !inMemory(filepath.Dir(a)) && !inMemory(filepath.Dir(filepath.Dir(a))) {
			t.Errorf("root's state is in %s, which is not in memory", a)
		}
	} else if a != "/data/a/state" {
		t.Errorf("the state is in %s", a)
	}
}
