package service

import (
	"path/filepath"
	"testing"
)

// TestTypeScript runs the tests of the library for TypeScript, the code of its pages among
// them. Its types are looked at with the linters.
func TestTypeScript(t *testing.T) {
	s := shared(t)
	folder, err := filepath.Abs("../../sdk/typescript")
	if err != nil {
		t.Fatal(err)
	}
	must(t, folder, nil, "scripts/install.sh")
	must(t, folder, []string{"ATOLL_BASE_URL=" + s.URL, "ATOLL_API_KEY=" + s.Tenant(t, "typescript", "enterprise")}, "npm", "run", "-s", "test")
}
