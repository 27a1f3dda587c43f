package redteam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// auditCases look what the trail has of all this.
func auditCases() []Case {
	return []Case{
		{"audit/rows", High, "runs a program and looks for its row", "there is one with the hash of the code, and without the code", auditRow},
		{"audit/refusals", High, "is refused 200 times", "the trail has the refusals, in a few rows", auditRefusals},
		{"audit/verify", Critical, "has the trails of both tenants verified", "they are whole", auditVerify},
		{"audit/change", Critical, "changes and deletes rows with an administrator's key", "the server has no such operation", auditChange},
	}
}

type auditRecord struct {
	Hash   string `json:"executed_code_hash"`
	Status string `json:"exit_status"`
	Meta   any    `json:"metadata"`
}

func (a *arena) rows(ctx context.Context, query string) ([]auditRecord, error) {
	return listed[auditRecord](ctx, a.admin, "/v1/admin/tenants/"+attackerTenant+"/audit?"+query)
}

func auditRow(ctx context.Context, a *arena) error {
	code := "print('" + token(12) + "')"
	e, err := a.execute(ctx, a.plain, "python", code, 20, nil)
	if err != nil {
		return err
	}
	if e.Status != http.StatusOK {
		return fmt.Errorf("the program: %s", e)
	}
	got, err := a.admin.do(ctx, http.MethodGet, "/v1/admin/tenants/"+attackerTenant+"/audit?trace_id="+e.Trace, nil)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(code))
	if !strings.Contains(string(got.Body), hex.EncodeToString(sum[:])) {
		return found("the execution %s has no row with its hash: %s", e.Trace, got)
	}
	if strings.Contains(string(got.Body), code[7:31]) {
		return found("the row has the code: %s", got)
	}
	return nil
}

func auditRefusals(ctx context.Context, a *arena) error {
	c, id, err := a.keyAndID(ctx, attackerTenant, envPlain, "execute")
	if err != nil {
		return err
	}
	for range 200 {
		got, err := c.once(ctx, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "pass", "timeout": 100_000})
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("a time-out above the plan's: %s", got)
		}
	}
	rows, err := a.rows(ctx, "key="+id)
	if err != nil {
		return err
	}
	if len(rows) == 0 || len(rows) > 20 {
		return found("200 refusals have %d rows", len(rows))
	}
	return nil
}

func auditVerify(ctx context.Context, a *arena) error {
	for _, tenant := range []string{attackerTenant, victimTenant} {
		var report struct {
			OK       bool
			Problems []any
		}
		if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/tenants/"+tenant+"/audit/verify", nil, &report); err != nil {
			return err
		}
		if !report.OK || len(report.Problems) > 0 {
			return found("the trail of %s: %v", tenant, report.Problems)
		}
	}
	return nil
}

func auditChange(ctx context.Context, a *arena) error {
	at := "/v1/admin/tenants/" + attackerTenant + "/audit"
	for _, method := range []string{http.MethodDelete, http.MethodPatch, http.MethodPut, http.MethodPost} {
		for _, path := range []string{at, at + "/1", "/v1/admin/audit/trails"} {
			got, err := a.admin.do(ctx, method, path, map[string]any{})
			if err != nil {
				return err
			}
			if got.Status < 400 || got.Status >= 500 {
				return found("%s %s: %s", method, path, got)
			}
		}
	}
	return nil
}
