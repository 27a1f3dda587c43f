package agent

import "testing"

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		names  []string
		want   Verdict
	}{
		{Policy{}, []string{"run_code", "sandbox"}, Allowed},
		{Policy{Allow: []string{}}, []string{"run_code", "sandbox"}, Denied},
		{Policy{Allow: []string{"sandbox"}}, []string{"run_code", "sandbox"}, Allowed},
		{Policy{Allow: []string{"sandbox"}}, WebSearch.Names(), Denied},
		{Policy{Allow: []string{"web-search"}}, WebSearch.Names(), Allowed},
		{Policy{Allow: []string{"sandbox"}, Deny: []string{"run_code"}}, []string{"run_code", "sandbox"}, Denied},
		{Policy{Deny: []string{"web_search"}, Confirm: []string{"web_search"}}, WebSearch.Names(), Denied},
		{Policy{Confirm: []string{"web-search"}}, WebSearch.Names(), Asks},
		{Policy{Deny: []string{""}}, []string{"", "other"}, Allowed},
	} {
		if got := c.policy.Judge(c.names...); got != c.want {
			t.Errorf("%+v of %q: %d, want %d", c.policy, c.names, got, c.want)
		}
	}
}
