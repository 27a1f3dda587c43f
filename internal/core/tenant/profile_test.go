package tenant

import "testing"

// TestUnrestricted: the profile unrestricted gives full access to files, which is root's, where the
// tenant's policy lets programs run as root; a request can still decline it.
func TestUnrestricted(t *testing.T) {
	for _, c := range []struct {
		allowed bool
		root    *bool
		want    bool
	}{{allowed: true, want: true}, {allowed: false, want: false}, {allowed: true, root: new(false), want: false}} {
		e := Environment{}
		profile := Unrestricted
		if err := changePermissions(Tenant{NetworkEnabled: true, RootEnabled: c.allowed}, &e, PermissionsChange{Profile: &profile, Root: c.root}); err != nil {
			t.Fatal(err)
		}
		if e.Permissions.Process.Root != c.want {
			t.Errorf("%+v: programs run as root: %t", c, e.Permissions.Process.Root)
		}
	}
}
