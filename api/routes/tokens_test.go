package routes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api/routes"
	"github.com/atoll-run/atoll/internal/control/repeats"
	"github.com/atoll-run/atoll/internal/control/tokens"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// TestTokenOperations: the list of what is open to tokens says of each operation what the
// table says, and has nothing by which a token could get more than it was given.
func TestTokenOperations(t *testing.T) {
	open := 0
	for _, op := range routes.Documented() {
		rule, ok := tokens.Operation(op.ID)
		if !ok {
			continue
		}
		open++
		if op.Scope != rule.Scope {
			t.Errorf("%s needs the scope %q, and the list says %q", op.ID, op.Scope, rule.Scope)
		}
		if rule.Scope != "" && !slices.Contains(tenant.TokenScopes, rule.Scope) {
			t.Errorf("%s needs the scope %s, which no token has", op.ID, rule.Scope)
		}
		if op.Access == httpapi.Public || op.Compat != nil && op.Compat.Caller != nil || strings.HasPrefix(op.Path, "/v1/admin") || strings.HasPrefix(op.Path, "/v1/tokens") {
			t.Errorf("%s is open to tokens", op.ID)
		}
		for reach, param := range map[tokens.Reach]string{tokens.ReachSession: "{session_id}", tokens.ReachSandbox: "{sandbox}"} {
			if (rule.Reach == reach) != strings.Contains(op.Path, param) {
				t.Errorf("%s %s: the list says reach %d", op.ID, op.Path, rule.Reach)
			}
		}
	}
	if open != tokens.Operations() {
		t.Errorf("%d of the %d operations of the list are in the table", open, tokens.Operations())
	}
}

// TestRepeatables: every operation of the list of those that take an Idempotency-Key is in the
// table, which checks what it is.
func TestRepeatables(t *testing.T) {
	n := 0
	for _, op := range routes.Documented() {
		if takes, _ := repeats.Operation(op.ID); takes {
			n++
		}
	}
	if n != repeats.Operations() {
		t.Errorf("%d of the %d operations of the list are in the table", n, repeats.Operations())
	}
}
