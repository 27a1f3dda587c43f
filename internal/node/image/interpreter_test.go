package image

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

func TestCandidates(t *testing.T) {
	root := erofs.NewDir(0o755)
	for name, n := range map[string]*erofs.Node{
		"/usr/bin/python3.14":    erofs.NewFile(0o755, "x"),
		"/usr/bin/python3":       erofs.NewSymlink("python3.14"),
		"/bin":                   erofs.NewSymlink("usr/bin"),
		"/opt/bin/python3":       erofs.NewFile(0o644, "not a program"),
		"/opt/bin/node":          erofs.NewSymlink("../../../../nowhere"),
		"/usr/bin/nodejs":        erofs.NewSymlink("/etc/alternatives/node"),
		"/etc/alternatives/node": erofs.NewSymlink("/usr/lib/node/node"),
		"/usr/lib/node/node":     erofs.NewFile(0o755, "x"),
		"/usr/bin/bash":          erofs.NewSymlink("bash"),
	} {
		if err := tree.Put(root, name, n); err != nil {
			t.Fatal(err)
		}
	}
	got := candidates(root, "relative:/opt/bin:/none:/bin")
	want := map[execution.Language]string{execution.Python: "/bin/python3", execution.Node: "/bin/nodejs"}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for _, in := range got {
		if in.Path != want[in.Language] {
			t.Errorf("%+v", in)
		}
	}
}

func TestExamine(t *testing.T) {
	python := Interpreter{Language: execution.Python, Path: "/usr/bin/python3"}
	cases := []struct {
		name, out string
		want      Interpreter // the zero value: left out
	}{
		{"python", "3.14.0\n/usr/lib/python3/dist-packages\n", Interpreter{execution.Python, python.Path, "3.14.0", "/usr/lib/python3/dist-packages"}},
		{"python 2", "2.7.18\n/usr/lib/python2.7\n", Interpreter{}},
		{"nothing", "", Interpreter{}},
		{"escape codes", "3.14.0\x1b[2J\n/usr/lib\n", Interpreter{}},
		{"relative folder", "3.14.0\nlib\n", Interpreter{}},
		{"folder that climbs", "3.14.0\n/usr/../etc\n", Interpreter{}},
		{"endless", strings.Repeat("3", 1<<20), Interpreter{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			probe := func(context.Context, runtime.Rootfs, []string) ([]byte, error) { return []byte(c.out), nil }
			got, err := examine(t.Context(), probe, runtime.Rootfs{}, []Interpreter{python}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == (Interpreter{}) && len(got) > 0 || c.want != (Interpreter{}) && (len(got) != 1 || got[0] != c.want) {
				t.Fatalf("%+v", got)
			}
		})
	}
	t.Run("preload that is missing", func(t *testing.T) {
		probe := func(_ context.Context, _ runtime.Rootfs, argv []string) ([]byte, error) {
			if argv[len(argv)-1] == "import numpy, pandas" {
				return nil, errors.New("exit status 1")
			}
			return []byte(cases[0].out), nil
		}
		_, err := examine(t.Context(), probe, runtime.Rootfs{}, []Interpreter{python}, []string{"numpy", "pandas"}, nil)
		if fault.KindOf(err) != fault.Invalid {
			t.Fatal(err)
		}
	})
}
