package store

// Fixtures and checks of versions that changed rows which others added.
func init() {
	fixtures[39] = `UPDATE runs SET sandbox = 'sbx_39' WHERE id = 'run_1'`
	checks[39] = `SELECT count(*) FROM runs WHERE sandbox = 'sbx_39'`
	fixtures[40] = `UPDATE tokens SET rights = '["approve"]' WHERE id = 'tok_9_1'`
	fixtures[42] = `INSERT INTO idempotent_objects (tenant, object, caller, key) SELECT tenant, 'sb_42', caller, key FROM idempotent_requests`
	checks[42] = `SELECT count(*) FROM idempotent_objects WHERE object = 'sb_42'`
	fixtures[44] = `UPDATE sandboxes SET image_warning = 'warning 44'`
	checks[44] = `SELECT count(*) FROM sandboxes WHERE image_warning = 'warning 44'`
	fixtures[46] = `UPDATE snapshots SET disk_limit = 46 WHERE id = 'snap-0123456789abcdef'`
	checks[46] = `SELECT count(*) FROM snapshots WHERE disk_limit = 46`
	fixtures[48] = `INSERT INTO activity_texts (tenant, trace_id, text, expires_at) VALUES ('ten_1', 'trc_1', 'sealed', 1700000000000002)`
	checks[48] = `SELECT count(*) FROM activity_texts x JOIN audit_rows r ON r.trace_id = x.trace_id JOIN executions e ON e.by_turn = '' JOIN tenants t ON NOT t.audit_text
		JOIN charge_days d ON d.estimated = 0 WHERE r.turn = '' AND r.sandbox = '' AND r.thread = '' AND r.credits = 0 AND r.cost = 0`
	fixtures[49] = `INSERT INTO approvals (id, tenant, key_id, environment, session, run, event, item, thread, agent, tool, server, arguments, status, created_at)
		VALUES ('apr_49', 'ten_1', 'key_9', 'env_1', 'sess_1', 'run_1', 2, '', '', 'agt_1', 'run_code', '', 'sealed', 'denied', 1700000000000001)`
	checks[49] = `SELECT count(*) FROM approvals a JOIN session_calls c ON c.session = a.session AND c.seq = a.event WHERE a.id = 'apr_49' AND a.next = '' AND a.deadline IS NULL`
	fixtures[47] = `UPDATE tenants SET deleted_at = 47, erased_at = 48 WHERE id = 'ten_1'`
	checks[47] = `SELECT count(*) FROM tenants WHERE deleted_at = 47 AND erased_at = 48`
	checks[40] = `SELECT count(*) FROM tokens WHERE id = 'tok_9_1' AND rights = '["approve"]'`
}
