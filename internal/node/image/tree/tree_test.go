package tree_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

func sample(t *testing.T) *erofs.Node {
	t.Helper()
	root := erofs.NewDir(0o755)
	for name, n := range map[string]*erofs.Node{
		"/usr/bin/env":  erofs.NewFile(0o755, "env"),
		"/bin":          erofs.NewSymlink("usr/bin"),
		"/abs":          erofs.NewSymlink("/usr/bin/env"),
		"/out":          erofs.NewSymlink("../../../../usr"),
		"/usr/up":       erofs.NewSymlink("../bin/env"),
		"/loop":         erofs.NewSymlink("loop"),
		"/dangling":     erofs.NewSymlink("/new/place"),
		"/through-file": erofs.NewSymlink("usr/bin/env/x"),
		"/slow":         erofs.NewSymlink(strings.Repeat("usr/../", 500) + "slow2"),
		"/slow2":        erofs.NewSymlink(strings.Repeat("usr/../", 580) + "usr"),
	} {
		if err := tree.Put(root, name, n); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLookup(t *testing.T) {
	root := sample(t)
	cases := []struct {
		path, want string
		err        error
	}{
		{"/", "/", nil},
		{"", "/", nil},
		{"/usr/bin/env", "/usr/bin/env", nil},
		{"usr//./bin/env", "/usr/bin/env", nil},
		{"/bin/env", "/usr/bin/env", nil},
		{"/abs", "/usr/bin/env", nil},
		{"/out/bin", "/usr/bin", nil},
		{"/usr/up", "/usr/bin/env", nil},
		{"/../../usr/bin/..", "/usr", nil},
		{"/bin/../up", "/usr/bin/env", nil}, // ".." is of where the link leads
		{"/none", "", fs.ErrNotExist},
		{"/dangling", "", fs.ErrNotExist},
		{"/usr/bin/env/x", "", tree.ErrNotDir},
		{"/usr/bin/env/..", "", tree.ErrNotDir},
		{"/through-file", "", tree.ErrNotDir},
		{"/loop", "", tree.ErrLoop},
		{"/slow", "", tree.ErrLoop},
	}
	for _, c := range cases {
		_, got, err := tree.Lookup(root, c.path)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q leads to %q, %v; want %q, %v", c.path, got, err, c.want, c.err)
		}
	}
}

func TestChanges(t *testing.T) {
	root := sample(t)
	if _, err := tree.MkdirAll(root, "/dangling/a", 0o700); err != nil {
		t.Fatal(err)
	}
	if n, p, err := tree.Lookup(root, "/new/place/a"); err != nil || p != "/new/place/a" || n.Mode != erofs.TypeDir|0o700 {
		t.Fatalf("%v %q %v", n, p, err)
	}
	if _, err := tree.MkdirAll(root, "/abs", 0o755); !errors.Is(err, tree.ErrNotDir) {
		t.Fatal(err)
	}
	if err := tree.Put(root, "/bin/new", erofs.NewFile(0o644, "text")); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{100: "text", 2: "te", 0: ""} {
		if data, err := tree.ReadFile(root, "/usr/bin/new", limit); err != nil || string(data) != want {
			t.Fatalf("%q, %v", data, err)
		}
	}
	if _, err := tree.ReadFile(root, "/usr", 100); err == nil {
		t.Fatal("a folder was read")
	}
	for _, bad := range []string{"/", "/a/..", fmt.Sprintf("/%0256d", 1)} {
		if err := tree.Put(root, bad, erofs.NewDir(0)); err == nil {
			t.Errorf("%.20q was taken", bad)
		}
	}
	tree.Remove(root, "/bin/new")
	tree.Remove(root, "/bin") // the link, not where it leads
	tree.Remove(root, "/no/such/thing")
	if _, _, err := tree.Lookup(root, "/bin"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, _, err := tree.Lookup(root, "/usr/bin/env"); err != nil {
		t.Fatal(err)
	}
}
