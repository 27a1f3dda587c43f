package admin

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/control/trail"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

var exampleHash = strings.Repeat("0123456789abcdef", 4)

// auditParams are the parameters that select audit rows.
func auditParams(span []httpapi.Param) []httpapi.Param {
	return append(append([]httpapi.Param{
		{Name: "key", Doc: "Id or name of the key."}, {Name: "agent", Doc: "The agent that made the call."}, {Name: "session_id", Doc: "The session; for execute_code, the turn."}, {Name: "turn_id", Doc: "The turn of an agent's session, or the response."},
		{Name: "source", Doc: "The interface or tool that the caller used: execute, execute_code, a tool, or an operation of a named sandbox."},
		{Name: "exit_status", Doc: "How it ended.", Enum: []string{"ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"}},
		{Name: "trace_id", Doc: "Names the request or execution."}, {Name: "executed_code_hash", Doc: "SHA-256 of the code, command or path, in hexadecimal digits.", Pattern: "^[0-9a-f]{64}$"},
		{Name: "metadata.", Doc: "metadata.KEY=VALUE: rows with that value; may be given for several keys."},
	}, span...), httpapi.PageParams(100, 1000)...)
}

func (h *Handlers) listAudit(c *httpapi.Call) (out httpapi.Page[AuditRow], err error) {
	t, err := c.Tenant(h.Tenants.Recorded)
	if err != nil {
		return out, err
	}
	f := audit.Filter{
		Tenant: t.ID, Agent: c.Text("agent"), SessionID: c.Text("session_id"), Turn: c.Text("turn_id"), Source: c.Text("source"),
		ExitStatus: audit.ExitStatus(c.Text("exit_status")), TraceID: c.Text("trace_id"), Cursor: c.Text("page"), Limit: int(c.Int("limit")),
	}
	if f.Since, f.Before, err = c.Span(); err != nil {
		return out, err
	}
	q := trail.Query{HasSource: c.Has("source"), CodeSHA256: c.Text("executed_code_hash"), Key: c.Text("key")}
	if err := q.Rows(c.Context(), h.Tenants, &f); err != nil {
		return out, err
	}
	for name := range c.Query {
		if key, ok := strings.CutPrefix(name, "metadata."); ok {
			if f.Metadata == nil {
				f.Metadata = map[string]string{}
			}
			f.Metadata[key] = c.Text(name)
		}
	}
	rows, next, err := h.Trail.List(c.Context(), f)
	if err != nil {
		return out, err
	}
	return httpapi.Page[AuditRow]{Data: httpapi.Each(rows, rowOf), NextPage: httpapi.OrNull(next)}, nil
}

// exportAudit writes rows as they are read, one a line.
func (h *Handlers) exportAudit(c *httpapi.Call) error {
	t, err := c.Tenant(h.Tenants.Recorded)
	if err != nil {
		return err
	}
	since, before, err := c.Span()
	if err != nil {
		return err
	}
	out, started := bufio.NewWriterSize(c.W, 64<<10), false
	for row, err := range h.Trail.Export(c.Context(), t.ID, since, before) {
		if err != nil { // half an export must not look like a whole one: the connection is cut
			return fmt.Errorf("read the audit trail: %w", err)
		}
		if !started {
			started = true
			c.Start(httpapi.NDJSON)
		}
		if err := json.MarshalWrite(out, rowOf(row), jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil // the client has gone
		}
		if err := out.WriteByte('\n'); err != nil {
			return nil
		}
	}
	if !started {
		c.Start(httpapi.NDJSON)
	}
	_ = out.Flush() // a failed write means that the client has gone
	return nil
}

func (h *Handlers) verifyAudit(c *httpapi.Call, in *AuditCheck) (out AuditReport, err error) {
	t, failed := c.Tenant(h.Tenants.Recorded)
	name, _ := c.NameIn("tenant")
	of, err := trail.Find(c.Context(), h.Verifier, t, failed, name)
	if err != nil {
		return out, err
	}
	var known audit.Mark
	if in.Known != nil {
		if known, err = trail.Mark(in.Known.Number, in.Known.Hash); err != nil {
			return out, err
		}
	}
	r, err := of.Verify(c.Context(), known)
	if err != nil {
		return out, err
	}
	return reportOf(r), nil
}

func (h *Handlers) listTrails(c *httpapi.Call) (out httpapi.Page[AuditTrail], err error) {
	ids, err := h.Verifier.Trails(c.Context())
	if err != nil {
		return out, err
	}
	tenants, err := h.Tenants.Tenants(c.Context())
	if err != nil {
		return out, err
	}
	names := map[string]*string{}
	for _, t := range tenants {
		names[t.ID] = &t.Name
	}
	return httpapi.PageOf(c, ids, func(id string) string { return id }, func(id string) AuditTrail { return AuditTrail{id, names[id]} })
}
