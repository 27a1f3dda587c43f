package httpapi

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// auditQuery are the parameters that select audit rows.
var auditQuery = []string{"key", "agent", "session_id", "source", "exit_status", "trace_id", "executed_code_hash", "metadata.", "since", "before", "limit", "page"}

// sourceName is what sources look like: interfaces, tools, and what is done with
// named sandboxes.
var sourceName = regexp.MustCompile(`^[a-z][a-z_]{0,63}$`)

func (c *adminCall) tenantOf() (tenant.Tenant, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return tenant.Tenant{}, err
	}
	return c.Tenants.Tenant(c.r.Context(), name)
}

func (c *adminCall) listAudit() (any, error) {
	t, err := c.tenantOf()
	if err != nil {
		return nil, err
	}
	f := audit.Filter{
		Tenant: t.ID, Agent: c.query.Get("agent"), SessionID: c.query.Get("session_id"), Source: c.query.Get("source"),
		ExitStatus: audit.ExitStatus(c.query.Get("exit_status")), TraceID: c.query.Get("trace_id"), Cursor: c.query.Get("page"),
	}
	if f.Since, f.Before, err = querySpan(c.query); err != nil {
		return nil, err
	}
	limit, err := queryInt(c.query, "limit", 100, 1, 1000)
	if err != nil {
		return nil, err
	}
	f.Limit = int(limit)
	if c.query.Has("source") && !sourceName.MatchString(f.Source) {
		return nil, invalid("source must be what rows have there, such as execute, execute_code, shell or sandbox_create")
	}
	if f.ExitStatus != "" && !f.ExitStatus.Valid() {
		return nil, invalid("exit_status must be one of ok, error, timeout, oom, cap_exceeded, provisioning, cancelled")
	}
	if text := c.query.Get("executed_code_hash"); text != "" {
		if f.CodeSHA256, err = hex.DecodeString(text); err != nil || len(f.CodeSHA256) != 32 {
			return nil, invalid("executed_code_hash must be 64 hexadecimal digits")
		}
	}
	if name := c.query.Get("key"); name != "" {
		if !tenant.Name.MatchString(name) {
			return nil, invalid("key: the tenant has no such key")
		}
		k, err := c.Tenants.Key(c.r.Context(), t.ID, name)
		if fault.KindOf(err) == fault.NotFound && err != nil {
			return nil, invalid("key: the tenant has no such key")
		} else if err != nil {
			return nil, err
		}
		f.Key = k.ID
	}
	for name := range c.query {
		if key, ok := strings.CutPrefix(name, "metadata."); ok {
			if f.Metadata == nil {
				f.Metadata = map[string]string{}
			}
			f.Metadata[key] = c.query.Get(name)
		}
	}
	rows, next, err := c.Trail.List(c.r.Context(), f)
	if err != nil {
		return nil, err
	}
	out := Page[AuditRow]{Data: make([]AuditRow, len(rows)), NextPage: orNull(next)}
	for i, r := range rows {
		out.Data[i] = auditWire(r)
	}
	return out, nil
}

// exportAudit writes rows as they are read, one a line.
func (c *adminCall) exportAudit() (any, error) {
	t, err := c.tenantOf()
	if err != nil {
		return nil, err
	}
	since, before, err := querySpan(c.query)
	if err != nil {
		return nil, err
	}
	started := false
	out := bufio.NewWriterSize(c.w, 64<<10)
	start := func() {
		started = true
		c.w.Header().Set("Content-Type", ndjson)
		c.w.Header().Set("Cache-Control", "no-store")
		c.w.WriteHeader(http.StatusOK)
	}
	for row, err := range c.Trail.Export(c.r.Context(), t.ID, since, before) {
		if err != nil { // half an export does not look like a whole one: the connection is cut
			return nil, fmt.Errorf("read the audit trail: %w", err)
		}
		if !started {
			start()
		}
		if err := json.MarshalWrite(out, auditWire(row), jsontext.AllowInvalidUTF8(true)); err != nil {
			return errAnswered, nil // the client has gone
		}
		if err := out.WriteByte('\n'); err != nil {
			return errAnswered, nil
		}
	}
	if !started {
		start()
	}
	// A failed write means that the client has gone.
	_ = out.Flush()
	return errAnswered, nil
}

func (c *adminCall) verifyAudit() (any, error) {
	t, err := c.tenantOf()
	if err != nil {
		return nil, err
	}
	var in AuditCheck
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	var known audit.Mark
	if in.Known != nil {
		sum, err := hex.DecodeString(in.Known.Hash)
		if err != nil || len(sum) != len(known.Hash) || in.Known.Number < 1 {
			return nil, invalid("known must be the head of an earlier report: a number from 1 and a hash of 64 hexadecimal digits")
		}
		known = audit.Mark{Number: in.Known.Number, Hash: [32]byte(sum)}
	}
	r, err := c.Verifier.Verify(c.r.Context(), t.ID, known)
	if err != nil {
		return nil, err
	}
	return reportWire(r), nil
}

func (c *adminCall) tenantUsage() (any, error) {
	t, err := c.tenantOf()
	if err != nil {
		return nil, err
	}
	return usageOf(c.r.Context(), c.Usage, t, c.query)
}
