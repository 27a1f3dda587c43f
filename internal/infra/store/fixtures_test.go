package store

// Fixtures and checks of versions that changed rows which others added.
func init() {
	fixtures[39] = `UPDATE runs SET sandbox = 'sbx_39' WHERE id = 'run_1'`
	checks[39] = `SELECT count(*) FROM runs WHERE sandbox = 'sbx_39'`
	fixtures[40] = `UPDATE tokens SET rights = '["approve"]' WHERE id = 'tok_9_1'`
	fixtures[42] = `INSERT INTO idempotent_objects (tenant, object, caller, key) SELECT tenant, 'sb_42', caller, key FROM idempotent_requests`
	checks[42] = `SELECT count(*) FROM idempotent_objects WHERE object = 'sb_42'`
	fixtures[46] = `UPDATE snapshots SET disk_limit = 46 WHERE id = 'snap-0123456789abcdef'`
	checks[46] = `SELECT count(*) FROM snapshots WHERE disk_limit = 46`
	checks[40] = `SELECT count(*) FROM tokens WHERE id = 'tok_9_1' AND rights = '["approve"]'`
}
