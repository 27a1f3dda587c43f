package requirement

import (
	"slices"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		text, name string // "" is refused
	}{
		{Pip, "six", "six"}, {Pip, "Six_Extra==1.17.0", "six-extra"}, {Pip, "requests[socks,security]>=2.31,<3", "requests"},
		{Pip, "numpy==2.*", "numpy"}, {Pip, "torch==2.1.0+cpu", "torch"}, {Pip, "a~=1.4", "a"}, {Pip, "six===1.0", "six"},
		{Pip, "-r", ""}, {Pip, "--index-url=http://x", ""}, {Pip, "six @ https://example.com/six.whl", ""}, {Pip, "git+https://example.com/x", ""},
		{Pip, "./six", ""}, {Pip, "six; python_version<'3'", ""}, {Pip, "six ==1", ""}, {Pip, "six==", ""}, {Pip, "", ""}, {Pip, "six.whl", ""}, {Pip, "six\n", ""},
		{Pip, "six==1,-r", ""}, {Pip, "$(id)", ""}, {Pip, "six==1;id", ""},
		{NPM, "left-pad", "left-pad"}, {NPM, "@scope/pkg@1", "@scope/pkg"}, {NPM, "left-pad@^1.3.0", "left-pad"}, {NPM, "is-number@latest", "is-number"}, {NPM, "x@>=1.0.0", "x"},
		{NPM, "-g", ""}, {NPM, "user/repo", ""}, {NPM, "github:user/repo", ""}, {NPM, "x@npm:y@1", ""}, {NPM, "x@file:..", ""}, {NPM, "../x", ""}, {NPM, "x.tgz", ""},
		{NPM, "@scope/", ""}, {NPM, "x@https://example.com/x", ""}, {NPM, "x y", ""}, {NPM, "@../x", ""}, {NPM, ".", ""}, {NPM, "..", ""},
		{NPM, "~", ""}, {NPM, "~x", ""}, {NPM, "x~y", ""}, {NPM, "@~s/x", ""}, {NPM, "@s/~x", ""}, {NPM, "x@~1.2", "x"}, {NPM, "__proto__", ""}, {NPM, "_x", ""}, {NPM, "@s/__proto__", ""}, {NPM, "node_modules", ""}, {NPM, "-x", ""},
		{Apt, "python3.13", "python3.13"}, {Apt, "libstdc++6", "libstdc++6"}, {Apt, "g++-12", "g++-12"}, {Apt, "clang++", "clang++"}, {Apt, "jq+", ""}, {Apt, "g+++", ""}, {Apt, "libc6=2.36-", ""}, {Apt, "libc6=2.36+", ""}, {Apt, "python3.", ""},
		{Apt, "a.*", ""}, {Apt, "jq?", ""}, {Apt, "jq|x", ""}, {Apt, "jq$", ""}, {Apt, "[a]b", ""}, {Apt, "~njq", ""}, {Apt, "?all", ""},
		{Apt, "jq", "jq"}, {Apt, "g++", "g++"}, {Apt, "libssl3", "libssl3"}, {Apt, "jq=1.7.1-3", "jq"}, {Apt, "xz=1:2.0~rc1-1", "xz"},
		{Apt, "jq-", ""}, {Apt, "-y", ""}, {Apt, "./x.deb", ""}, {Apt, "x.deb", ""}, {Apt, "jq/testing", ""}, {Apt, "JQ", ""}, {Apt, "jq:amd64", ""}, {Apt, "^task", ""}, {Apt, "", ""},
	} {
		name, err := Name(c.kind, c.text)
		if name != c.name || (err == nil) != (name != "") {
			t.Errorf("%s %q: %q, %v; want %q", c.kind, c.text, name, err, c.name)
		}
		if err != nil && !strings.HasPrefix(err.Error(), string(c.kind)+": ") {
			t.Errorf("%v does not say which list", err)
		}
	}
}

func TestNormal(t *testing.T) {
	got, err := Set{Pip: []string{"six", "attrs==1", "six"}, Apt: []string{}}.Normal()
	if err != nil || !slices.Equal(got.Pip, []string{"attrs==1", "six"}) || got.Apt != nil || got.NPM != nil {
		t.Fatalf("%+v %v", got, err)
	}
	many := make([]string, MaxEach+1)
	for i := range many {
		many[i] = "p" + strings.Repeat("x", i)
	}
	if _, err := (Set{NPM: many}).Normal(); err == nil {
		t.Error("more packages than possible are taken")
	}
	if _, err := (Set{Pip: []string{"six", "-e"}}).Normal(); err == nil {
		t.Error("an option is taken")
	}
}

func TestRef(t *testing.T) {
	a, _ := Set{Pip: []string{"six", "attrs"}}.Normal()
	b, _ := Set{Pip: []string{"attrs", "six", "six"}}.Normal()
	if Ref("default", &a) != Ref("default", &b) || !IsRef(Ref("default", &a)) {
		t.Error("the same packages give two references")
	}
	for name, other := range map[string]string{"another image": Ref("tools", &a), "another kind": Ref("default", &Set{NPM: a.Pip}), "fewer": Ref("default", &Set{Pip: a.Pip[:1]})} {
		if other == Ref("default", &a) {
			t.Error(name, "gives the same reference")
		}
	}
	if Ref("default", &Set{}) != "default" {
		t.Error("an image without packages is not itself")
	}
}
