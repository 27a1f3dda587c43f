package prose

import (
	"testing"
)

// pairs are wordings and their replacements.
var pairs = []struct{ before, after string }{
	{"A named sandbox is one that stays: it is made under a name, used again and again with the files and processes that it has, and ends when it is told to or when its time is over.",
		"A named sandbox keeps its files and processes between calls. It lives until you delete it or it expires."},
	{"A session is a name that a caller makes up. It comes into being with its first use and owns a pool of sandboxes.",
		"You choose the session name. Atoll creates the session on first use; each session owns its own sandboxes."},
	{"Limits and permissions are those from when it was made; variables and secrets are looked up for each program.",
		"Limits and permissions are fixed when the sandbox is created. Variables and secrets are read each time a program starts."},
	{"What the network allows is looked at again with every use: what both the sandbox's policy and its environment's of now allow, if its tenant has a network.",
		"Atoll re-checks the network policy on every call. A host must be allowed by the sandbox's policy and by the environment's current policy."},
	{"Whether the keys that have used a running sandbox are still valid is asked every 10 seconds, with the environment and tenant of now.",
		"Every 10 seconds Atoll re-validates the keys that have used a running sandbox."},
	{"Neither lists nor searches tell of it.", "It does not appear in lists or search results."},
	{"What an agent can react to is a 200 with `ok: false`; other statuses are mistakes of the caller.",
		"Failures that the agent can handle return 200 with `ok: false`. Any other status means the request itself was wrong."},
	{"An empty list allows nothing. One that is left out allows all.", "`[]` allows nothing. Omitting the field allows everything."},
	{"Case and a last dot mean nothing.", "Host names are case-insensitive; a trailing dot is ignored."},
	{"In Anthropic's form such files are not told of; they can be read here all the same.", "The Anthropic-compatible API does not return these files. Read them here instead."},
	{"the key has not the scope %s", `this key lacks the scope "%s"; ask an administrator to add it`},
	{"there is no such execution", `execution "%s" not found`},
	{"the sandbox sleeps without processes, so there is nothing to copy them from (%s); use it once, and copy it then",
		`cannot fork "%s": it is asleep with no saved processes (%s). Wake it first, then fork`},
	{"none of the keys that have used this sandbox is valid any more", "every key that has used this sandbox has been revoked"},
	{"what a machine lacks", "missing prerequisites"},
	{"Have a sandbox sleep until it is used, processes and all", "Put a sandbox to sleep; the next call wakes it with its processes"},
	{"results are not recorded any more", "stopped recording results"},
	{"Mode is what becomes of the one who hands on.", "Mode says whether the delegating agent waits (orchestrator) or leaves the conversation (swarm)."},
	{"A session that there is not, or that has ended, gets none.", "Unknown and ended sessions are skipped."},
}

// TestRules checks that each rule catches a wording of pairs, and no replacement.
func TestRules(t *testing.T) {
	caught := map[string]bool{}
	for _, p := range pairs {
		hits := Text(p.before)
		if len(hits) == 0 {
			t.Errorf("no rule catches %q", p.before)
		}
		for _, h := range hits {
			caught[h.Advice] = true
		}
		for _, h := range Text(p.after) {
			t.Errorf("the rule to %s rejects %q in %q", h.Advice, h.Text, p.after)
		}
	}
	for _, r := range Rules {
		if !caught[r.Advice] {
			t.Errorf("the rule to %s catches nothing", r.Advice)
		}
	}
}

// TestText checks where rules apply.
func TestText(t *testing.T) {
	for text, want := range map[string]int{
		"Run a program. What follows FILE is passed to it.":                  1,
		"Run a program. What\nfollows FILE is passed to it.":                 1,
		"what is left out stays":                                             1,
		"Which runs?\n\nWhat is it?":                                         0,
		"Prints the text `What was asked for`.":                              0,
		"Examples:\n\n    What FILE\n\tWhat FILE\n":                          0,
		"See [What is new](https://example.com/told of).":                    0,
		"It says what happened. Then it ends.":                               0,
		"there is no such file; there is no such folder":                     2,
		"The key is not valid any more.\n\nIt has any more than one thread.": 1,
	} {
		if hits := Text(text); len(hits) != want {
			t.Errorf("%q has %d hits, want %d: %q", text, len(hits), want, hits)
		}
	}
}
