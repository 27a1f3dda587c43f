package seal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/seal"
)

func box(t *testing.T, fill byte) *seal.Box {
	t.Helper()
	b, err := seal.New(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpenGivesBackWhatWasSealed(t *testing.T) {
	b := box(t, 1)
	for _, plain := range [][]byte{nil, []byte("secret"), {0, 255, 0}} {
		got, err := b.Open(b.Seal(plain, "keys/1"), "keys/1")
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("Open(Seal(%q)) = %q, %v", plain, got, err)
		}
	}
}

func TestOpenRefusesWhatIsNotIts(t *testing.T) {
	b := box(t, 1)
	sealed := b.Seal([]byte("secret"), "keys/1")
	if _, err := b.Open(sealed, "keys/2"); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("moved to another place: %v", err)
	}
	if _, err := box(t, 2).Open(sealed, "keys/1"); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("another key: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := b.Open(changed, "keys/1"); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := b.Open(sealed[:i], "keys/1"); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestSealNeverRepeats(t *testing.T) {
	b := box(t, 1)
	if bytes.Equal(b.Seal([]byte("secret"), "a"), b.Seal([]byte("secret"), "a")) {
		t.Error("the same ciphertext twice")
	}
}

func TestCheck(t *testing.T) {
	b := box(t, 1)
	sum := b.Sum([]byte("data"), "cursor")
	if !b.Check([]byte("data"), "cursor", sum) {
		t.Error("its own sum is refused")
	}
	if b.Check([]byte("Data"), "cursor", sum) || b.Check([]byte("data"), "other", sum) ||
		box(t, 2).Check([]byte("data"), "cursor", sum) || b.Check([]byte("data"), "cursor", nil) {
		t.Error("a foreign sum is taken")
	}
}

func TestFingerprint(t *testing.T) {
	one := box(t, 1).Fingerprint()
	if len(one) != 32 || box(t, 1).Fingerprint() != one || box(t, 2).Fingerprint() == one {
		t.Errorf("fingerprints of key 1, 1 and 2: %s, %s, %s", one, box(t, 1).Fingerprint(), box(t, 2).Fingerprint())
	}
}

func TestNewWantsAWholeKey(t *testing.T) {
	if _, err := seal.New(make([]byte, 16)); err == nil {
		t.Error("a key of 16 bytes is taken")
	}
	if _, err := seal.ParseKey("abcd"); err == nil {
		t.Error("a key of 4 digits is taken")
	}
}

func TestKeyFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var wg sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys {
		wg.Go(func() {
			key, err := seal.KeyFile(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	for _, key := range keys {
		if !bytes.Equal(key, keys[0]) || len(key) != seal.KeySize {
			t.Fatalf("got different keys")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.KeyFile(path); err == nil {
		t.Error("a file without a key is taken")
	}
}

func TestTenantKeys(t *testing.T) {
	key := bytes.Repeat([]byte{7}, seal.KeySize)
	box, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.New(bytes.Repeat([]byte{8}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	again, err := seal.New(key) // of another process
	if err != nil {
		t.Fatal(err)
	}
	sealed := box.SealFor("ten_a", []byte("prompt"), "place")
	if plain, err := again.OpenFor("ten_a", sealed, "place"); err != nil || string(plain) != "prompt" {
		t.Errorf("got %q, %v", plain, err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another tenant":        func() ([]byte, error) { return box.OpenFor("ten_b", sealed, "place") },
		"another place":         func() ([]byte, error) { return box.OpenFor("ten_a", sealed, "elsewhere") },
		"another installation":  func() ([]byte, error) { return other.OpenFor("ten_a", sealed, "place") },
		"the installation's":    func() ([]byte, error) { return box.Open(sealed, "place") },
		"the installation's, 2": func() ([]byte, error) { return box.Open(append([]byte{1}, sealed[1:]...), "place") },
		"nothing":               func() ([]byte, error) { return box.OpenFor("ten_a", nil, "place") },
	} {
		if plain, err := open(); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%s: got %q, %v", name, plain, err)
		}
	}
	// What an earlier version stored is read.
	if plain, err := box.OpenFor("ten_a", box.Seal([]byte("old"), "place"), "place"); err != nil || string(plain) != "old" {
		t.Errorf("got %q, %v", plain, err)
	}
}
