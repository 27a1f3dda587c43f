package admin

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// sourceName is what sources look like: interfaces, tools, and what is done with named
// sandboxes.
var sourceName = regexp.MustCompile(`^[a-z][a-z_]{0,63}$`)

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
	if c.Has("source") && !sourceName.MatchString(f.Source) {
		return out, httpapi.Invalid("source must be one that rows have, such as execute, execute_code, shell or sandbox_create")
	}
	if text := c.Text("executed_code_hash"); text != "" {
		if f.CodeSHA256, err = hex.DecodeString(text); err != nil || len(f.CodeSHA256) != 32 {
			return out, httpapi.Invalid("executed_code_hash must be 64 hexadecimal digits")
		}
	}
	if name := c.Text("key"); name != "" {
		if !tenant.Name.MatchString(name) {
			return out, httpapi.Invalid("key: not found in this tenant")
		}
		k, err := h.Tenants.Key(c.Context(), t.ID, name)
		if fault.KindOf(err) == fault.NotFound && err != nil {
			return out, httpapi.Invalid("key: not found in this tenant")
		} else if err != nil {
			return out, err
		}
		f.Key = k.ID
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
	id, there, err := h.trailOf(c)
	if err != nil {
		return out, err
	}
	var known audit.Mark
	if in.Known != nil {
		sum, err := hex.DecodeString(in.Known.Hash)
		if err != nil || len(sum) != len(known.Hash) || in.Known.Number < 1 {
			return out, httpapi.Invalid("known must be the head of an earlier report: a number from 1 and a hash of 64 hexadecimal digits")
		}
		known = audit.Mark{Number: in.Known.Number, Hash: [32]byte(sum)}
	}
	r, err := h.Verifier.Verify(c.Context(), id, known)
	if err != nil {
		return out, err
	}
	if !there {
		r.Problems = append(r.Problems, audit.Problem{Kind: audit.Tenant, Detail: "the audit trail of tenant " + id + " has no record of the tenant: a server that deletes a tenant keeps a record of it"})
	}
	return reportOf(r), nil
}

// trailOf finds the trail that a path names: a tenant's, or that of a tenant
// which is not on record any more, by its id.
func (h *Handlers) trailOf(c *httpapi.Call) (id tenant.ID, there bool, err error) {
	t, err := c.Tenant(h.Tenants.Recorded)
	if err == nil || fault.KindOf(err) != fault.NotFound {
		return t.ID, true, err
	}
	name, _ := c.NameIn("tenant")
	trails, failed := h.Verifier.Trails(c.Context())
	if failed != nil {
		return "", false, failed
	}
	if slices.Contains(trails, name) {
		return name, false, nil
	}
	return "", false, err
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
