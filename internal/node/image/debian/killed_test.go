package debian_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/node/image/debian"
	"github.com/atoll-run/atoll/test/atolltest"
)

// killedMirror names the mirror that TestKilled's process builds from.
const killedMirror = "ATOLL_TEST_KILLED_MIRROR"

// TestKilled kills a process that builds, with SIGKILL: mmdebstrap ends and leaves nothing.
func TestKilled(t *testing.T) {
	if mirror := os.Getenv(killedMirror); mirror != "" {
		t.Fatal(debian.Bootstrap(t.Context(), debian.Options{Mirror: mirror}, func(io.Reader) error { return nil }))
	}
	asked := make(chan struct{})
	var once sync.Once
	mirror := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(asked) })
		<-r.Context().Done() // until apt is gone
	}))
	defer mirror.Close()
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), killedMirror+"="+mirror.URL+"/debian", "TMPDIR="+temp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if left, err := os.ReadDir(temp); err != nil || len(left) == 0 {
		t.Fatalf("nothing is being built: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	atolltest.Until(t, time.Minute, "mmdebstrap removes its files", func() bool {
		left, err := os.ReadDir(temp)
		return err == nil && len(left) == 0
	})
}
