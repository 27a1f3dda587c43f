package requirement

import (
	"slices"
	"testing"
)

func TestVariant(t *testing.T) {
	for name, c := range map[string]struct {
		extras []string
		ok     bool
	}{
		"default+browser":         {[]string{Browser}, true},
		"default+browser,office":  {[]string{Browser, Office}, true},
		"default+office,browser":  {nil, false}, // each variant has one name
		"default+browser,browser": {nil, false},
		"default+java":            {nil, false},
		"default+":                {nil, false},
		"default":                 {nil, false},
		"other+browser":           {nil, false},
		"default+browser/../x":    {nil, false},
	} {
		extras, ok := ParseVariant(name)
		if ok != c.ok || !slices.Equal(extras, c.extras) {
			t.Errorf("%s: %q, %t", name, extras, ok)
		}
		if ok && Variant(extras) != name {
			t.Errorf("%s comes back as %s", name, Variant(extras))
		}
	}
	if got := Variant([]string{Office, Browser, Office}); got != "default+browser,office" {
		t.Error(got)
	}
	if got := Variant(nil); got != Default {
		t.Error(got)
	}
	if got := Variants(); !slices.Equal(got, []string{"default+browser", "default+office", "default+browser,office"}) {
		t.Error(got)
	}
	if got := VariantCommand("default+browser,office"); got != "atoll image build --with browser,office" {
		t.Error(got)
	}
}
