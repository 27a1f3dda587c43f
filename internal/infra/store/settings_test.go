package store

const settingsVersion = 41

func init() {
	fixtures[settingsVersion] = `INSERT INTO settings (name, value, updated_at) VALUES ('model_allow', '10.0.0.7', 1700000000000000)`
	checks[settingsVersion] = `SELECT count(*) FROM settings WHERE name = 'model_allow' AND value = '10.0.0.7'`
}
