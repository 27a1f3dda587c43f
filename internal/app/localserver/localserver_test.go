package localserver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRecord(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(dir); !errors.Is(err, ErrNone) {
		t.Errorf("an empty folder: %v", err)
	}
	want := Record{URL: "http://127.0.0.1:9", PID: 7, Version: "v1"}
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, recordFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record: %v, %v", info, err)
	}
	if _, err := Find(dir); !errors.Is(err, ErrNone) {
		t.Errorf("nothing is locked: %v", err)
	}
	lock, err := os.Create(filepath.Join(dir, LockFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); !errors.Is(err, ErrNone) {
		t.Errorf("the lock is free: %v", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatalf("looking for a server kept its lock: %v", err)
	}
	if got, err := Find(dir); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := Remove(dir); err != nil {
		t.Error(err)
	}
	if err := Remove(dir); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, recordFile+"*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestLastServer(t *testing.T) {
	state, data := t.TempDir(), t.TempDir()
	env := map[string]string{"XDG_STATE_HOME": state}
	getenv := func(name string) string { return env[name] }
	if _, err := Last(getenv); !errors.Is(err, ErrNone) {
		t.Errorf("without a record: %v", err)
	}
	if err := Remember(getenv, data); err != nil {
		t.Fatal(err)
	}
	if _, err := Last(getenv); !errors.Is(err, ErrNone) {
		t.Errorf("a server that does not run: %v", err)
	}
	lock, err := os.Create(filepath.Join(data, LockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := Write(data, Record{URL: "http://127.0.0.1:9"}); err != nil {
		t.Fatal(err)
	}
	if got, err := Last(getenv); err != nil || got != data {
		t.Errorf("got %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(state, "atoll", lastFile), []byte(`{"data_dir": "relative"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Last(getenv); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a broken record: %v", err)
	}
	env = map[string]string{} // a service without a home
	if err := Remember(getenv, data); err != nil {
		t.Error(err)
	}
	if _, err := Last(getenv); !errors.Is(err, ErrNone) {
		t.Errorf("a user without a home: %v", err)
	}
}

func TestURL(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80", ":80": "http://localhost:80", "0.0.0.0:80": "http://localhost:80", "[::]:80": "http://localhost:80", "[::1]:80": "http://[::1]:80",
	} {
		if got := URL(address, false); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := URL("0.0.0.0:443", true); got != "https://localhost:443" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"url":"http://127.0.0.1:8080","pid":1,"version":"v"}`))
	f.Add([]byte(`{"url":"file:///etc/passwd"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Record
		if parse(text, &r) == nil && r.URL == "" {
			t.Error("a record without a URL")
		}
	})
}
