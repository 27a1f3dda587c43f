package engine

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestLinkGuestConcurrently: the first sandboxes of a process may be made at the same time.
func TestLinkGuestConcurrently(t *testing.T) {
	guest := filepath.Join(t.TempDir(), "guest-1.erofs")
	if err := os.WriteFile(guest, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		h := &host{disk: t.TempDir()}
		var g sync.WaitGroup
		for i := range 8 {
			g.Go(func() {
				if err := h.linkGuest(guest, filepath.Join(h.disk, strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			})
		}
		g.Wait()
		if left, err := os.ReadDir(h.disk); err != nil || len(left) != 9 {
			t.Errorf("%d files are left, not 9: %v", len(left), err)
		}
	}
}
