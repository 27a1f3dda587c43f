package store

// Fixtures and checks of versions that changed rows which others added.
func init() {
	fixtures[39] = `UPDATE runs SET sandbox = 'sbx_39' WHERE id = 'run_1'`
	checks[39] = `SELECT count(*) FROM runs WHERE sandbox = 'sbx_39'`
	fixtures[40] = `UPDATE tokens SET rights = '["approve"]' WHERE id = 'tok_9_1'`
	checks[40] = `SELECT count(*) FROM tokens WHERE id = 'tok_9_1' AND rights = '["approve"]'`
}
