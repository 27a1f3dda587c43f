package redteam

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// weakCLI is the variable that turns the test binary into an atoll command without defenses. It writes
// outside its directory, prints control sequences and sends its key along with redirects.
const weakCLI = "REDTEAM_WEAK_CLI"

func TestMain(m *testing.M) {
	if os.Getenv(weakCLI) != "" {
		beWeakCLI(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

func beWeakCLI(args []string) {
	out := args[len(args)-1]
	switch strings.Join(args[:2], " ") {
	case "session files":
		_ = os.WriteFile(filepath.Join(out, ".bashrc"), nil, 0o600) // fails if the last argument is no directory
	case "sandbox cp":
		_ = os.WriteFile(filepath.Join(out, "..", "redteam-escape"), nil, 0o600)
	}
	r, err := http.NewRequest(http.MethodGet, os.Getenv("ATOLL_BASE_URL"), nil)
	if err != nil {
		os.Exit(1)
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("ATOLL_API_KEY"))
	client := &http.Client{CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		next.Header.Set("Authorization", r.Header.Get("Authorization"))
		return nil
	}}
	res, err := client.Do(r)
	if err != nil {
		os.Exit(1)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body) // a partial body is enough
	fmt.Printf("\x1b[31m%s", raw)
}

// weakProgram writes a script that runs that command, and returns its path.
func weakProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "atoll")
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", weakCLI, self)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
