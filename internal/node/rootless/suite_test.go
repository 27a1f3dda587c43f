package rootless_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/rootless"
	"github.com/atoll-run/atoll/internal/node/rootless/rootlesstest"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
)

// insideVariable tells a copy of the test program, which an ordinary user runs,
// what root has prepared for it.
const insideVariable = "ATOLL_ROOTLESS_TEST"

// prepared is what the copy works with.
type prepared struct {
	Data   string // a folder of its own
	Guest  string
	Rootfs runtime.Rootfs

	NoMounts, NoNetwork bool
}

func inside() *prepared {
	text := os.Getenv(insideVariable)
	if text == "" {
		return nil
	}
	p := new(prepared)
	if err := json.Unmarshal([]byte(text), p); err != nil {
		panic(err)
	}
	return p
}

func TestMain(m *testing.M) {
	rootlesstest.Main()
	if p := inside(); p != nil && os.Geteuid() != 0 {
		code, err := rootless.Enter(p.Data, filepath.Join(p.Data, "state"), slog.New(slog.NewTextHandler(os.Stderr, nil)))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	os.Exit(runtimetest.Main(m))
}

func TestImage(t *testing.T) { suite(t, runtimetest.Image) }

func TestTree(t *testing.T) {
	suite(t, func(t testing.TB) runtime.Rootfs {
		root := runtimetest.Tree(t)
		// Its home belongs to a user of this machine, who is none of the
		// ordinary user's.
		if err := os.Chmod(filepath.Join(root.Tree, runtime.Home), 0o777); err != nil {
			t.Fatal(err)
		}
		return root
	})
}

// suite runs the runtimes' suite as an ordinary user.
func suite(t *testing.T, rootfs func(testing.TB) runtime.Rootfs) {
	if p := inside(); p != nil {
		runtimetest.GuestImage(t) // the suite wants to have built something
		runtimetest.Run(t, runtimetest.Driver{
			Open: func(t testing.TB, state string, _ *cgroup.Parent) runtimetest.Runtime {
				r, err := gvisor.New(gvisor.Config{Runsc: runtimetest.Binary(t, "atoll-runsc"), Guest: p.Guest, State: state})
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
			Rootfs:     func(testing.TB) runtime.Rootfs { return p.Rootfs },
			NoCgroups:  true,
			NoMounts:   p.NoMounts,
			NoNetwork:  p.NoNetwork,
			Checkpoint: true,
		})
		return
	}
	openTUN(t)
	top := t.Name()
	for _, ids := range []rootlesstest.Ids{rootlesstest.Subordinate, rootlesstest.Alone} {
		t.Run(ids.String(), func(t *testing.T) {
			t.Parallel() // each has a home of its own, and mostly waits
			u := rootlesstest.New(t, ids)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"atoll-runsc", "atoll-guest", "atoll-guestd", "gvisor-bin/gvisor_sentry"} {
				u.Give(t, runtimetest.Binary(t, name), filepath.Join("bin", name))
			}
			root := rootfs(t)
			text, err := json.Marshal(prepared{
				Data: filepath.Join(u.Home, "data"), Guest: runtimetest.GuestImage(t), Rootfs: root,
				NoMounts: ids == rootlesstest.Alone || root.Tree != "", NoNetwork: ids == rootlesstest.Alone,
			})
			if err != nil {
				t.Fatal(err)
			}
			cmd := u.Command(t, u.Give(t, self, "rootless.test"), "-test.run=^"+top+"$", "-test.v")
			cmd.Env = append(cmd.Env, insideVariable+"="+string(text), runtimetest.BinVariable+"="+filepath.Join(u.Home, "bin"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			awaitNone(t, u)
		})
	}
}

// openTUN lets every user open /dev/net/tun during the test, as most machines do
// for good.
func openTUN(t *testing.T) {
	t.Helper()
	const path = "/dev/net/tun"
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode()&0o006 == 0o006 {
		return
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(path, st.Mode().Perm()); err != nil {
			t.Error(err)
		}
	})
}
