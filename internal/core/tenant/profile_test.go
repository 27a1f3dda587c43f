package tenant

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TestUnrestricted: the profile unrestricted gives full access to files, which is root's, as long as
// the tenant's policy lets programs run as root, whenever that was allowed. A request can decline it.
func TestUnrestricted(t *testing.T) {
	profile, ports := Unrestricted, []uint16{25}
	for _, c := range []struct {
		allowed bool
		root    *bool
		want    bool
	}{{allowed: true, want: true}, {allowed: false, want: true}, {allowed: true, root: new(false), want: false}, {allowed: false, root: new(false), want: false}} {
		e := Environment{}
		of := Tenant{NetworkEnabled: true, RootEnabled: c.allowed}
		if err := changePermissions(of, &e, PermissionsChange{Profile: &profile, Root: c.root}); err != nil {
			t.Fatal(err)
		}
		if err := changePermissions(of, &e, PermissionsChange{BlockedPorts: &ports}); err != nil {
			t.Errorf("%+v: another rule: %v", c, err)
		}
		if e.Permissions.Process.Root != c.want {
			t.Errorf("%+v: the environment has root: %t", c, e.Permissions.Process.Root)
		}
		for _, allowed := range []bool{false, true} {
			of.RootEnabled = allowed
			if got := of.Permitted(e.Permissions).Process.Root; got != (c.want && allowed) {
				t.Errorf("%+v: programs run as root: %t, with a policy of %t", c, got, allowed)
			}
		}
	}
}

// TestRootByName checks that a request that explicitly asks for root is rejected if the policy does
// not allow root, with and without the profile unrestricted.
func TestRootByName(t *testing.T) {
	for _, profile := range []Profile{Unrestricted, StandardUse} {
		err := changePermissions(Tenant{NetworkEnabled: true}, &Environment{}, PermissionsChange{Profile: &profile, Root: new(true)})
		if fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", profile, err)
		}
	}
}
