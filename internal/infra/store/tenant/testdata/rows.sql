INSERT INTO plans (name, max_cpu, max_memory, concurrency, max_timeout, streaming, async, max_output, built_in) VALUES ('old', 1, 2, 3, 4, TRUE, FALSE, 5, FALSE);
INSERT INTO tenants (id, name, plan, sandbox_enabled, tier, monthly_credits, redaction_off, audit_days, created_at) VALUES ('ten_1', 'old', 'old', TRUE, 'standard', 1.5, '["jwt"]', 7, 1700000000000001);
INSERT INTO policy_events (tenant, actor, field, old_value, new_value, created_at) VALUES ('ten_1', 'cli', 'f', 'a', 'b', 1);
INSERT INTO executions (trace_id, tenant, key_id, environment, source, delivery, agent, turn, language, timeout, metadata, code_sha256, cpu, memory, webhook_url, webhook_status, status, created_at, completed_at)
    VALUES ('trc_1', 'ten_1', 'key_1', 'env_1', 'execute', 'inline', '', '', 'python', 1000000, '{"k":"v"}', '', 1, 2, '', '', 'success', 1700000000000000, 1700000000000001);
INSERT INTO execution_metadata (tenant, key, value, created_at, trace_id) VALUES ('ten_1', 'k', 'v', 1700000000000000, 'trc_1');
INSERT INTO audit_rows (trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
    duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at)
    VALUES ('trc_1', 'ten_1', 'key_1', 'env_1', 'execute', '', '', 'python', '', 'ok', 0, '', 1, 2, 3, FALSE, FALSE, 4, '', '', 30, 1700000000000000);
INSERT INTO usage_entries (trace_id, tenant, key_id, source, seconds, cpu, memory, bytes_out, sessions, credits, at) VALUES ('trc_1', 'ten_1', 'key_1', 'execute', 1, 1, 1, 0, 1, 2.5, 1700000000000000);
INSERT INTO threads (tenant, id, state, bytes, files, created_at, updated_at, lease, lease_until) VALUES ('ten_1', 'thread-1', 'state', 7, 2, 1, 2, '', 0);
UPDATE executions SET thread = 'thread-1';
INSERT INTO connections (id, tenant, slug, kind, prefix, read_only, target, created_at) VALUES ('con_1', 'ten_1', 'team', 's3', 'a/b', TRUE, '{"bucket":"old"}', 1700000000000000);
INSERT INTO environments (id, tenant, name, image, limits, env, created_at) VALUES ('env_7', 'ten_1', 'seven', 'default', '{}', '', 1);
INSERT INTO grants (id, tenant, connection, environment, prefix, read_only, created_at) VALUES ('grt_1', 'ten_1', 'con_1', 'env_7', 'a/b/c', FALSE, 1);
UPDATE executions SET mounts = '["team/a/b:ro"]';
INSERT INTO environments (id, tenant, name, image, limits, env, created_at, permissions, profile, base_template, timeout)
    VALUES ('env_1', 'ten_1', 'e', 'default', '{}', '', 1, '{"network":{"mode":"rules","allowed_hosts":["*"]},"filesystem":{"writable":["/tmp"]}}', 'standard', 'tpl_x', 60000000);
UPDATE tenants SET network_enabled = TRUE WHERE id = 'ten_1';
INSERT INTO keys (id, tenant, name, hash, hint, scopes, webhook_url, created_at, env) VALUES ('key_9', 'ten_1', 'nine', '12345678901234567890123456789012', 'hint', '["read"]', '', 1, '{"A":"b"}');
INSERT INTO keys (id, tenant, name, hash, hint, scopes, webhook_url, created_at, bound) VALUES ('key_10', 'ten_1', 'ten', '10345678901234567890123456789012', 'hint', '["read"]', '', 1, 'sealed');
INSERT INTO sandboxes (id, tenant, environment, session, name, key_id, executor, image, asked, limits, memory, disk, permissions, connected, state, sleep, detail,
    sleep_after, created_at, used_at, metered_at) VALUES ('sb-0123456789abcdef', 'ten_1', 'env_1', 's', 'default', 'key_1', 'exe_1', 'default', 'node:22',
    '{"cpu":1}', 1, 2, '', TRUE, 'sleeping', 'disk', '', 60000000, 1700000000000000, 1700000000000001, 1700000000000002);
INSERT INTO previews (sandbox, port, seed, hash, created_at) VALUES ('sb-0123456789abcdef', 80, 'seed', 'hash', 1);
INSERT INTO snapshots (id, tenant, environment, key_id, executor, sandbox, session, name, image, asked, limits, permissions, connected, sleep_after, kept, bytes, detail, created_at)
    VALUES ('snap-0123456789abcdef', 'ten_1', 'env_1', 'key_1', 'exe_1', 'sb-0123456789abcdef', 's', 'default', 'default', 'node:22', '{"cpu":1}', '', TRUE, 60000000,
    '{"state":"one","bytes":7,"disk":2,"memory":true}', 7, '', 1700000000000000);
INSERT INTO snapshot_litter (tenant, last) VALUES ('ten_1', 1);
UPDATE sandboxes SET sleep = 'stored', kept = '{"state":"two","bytes":7,"disk":2}';
UPDATE sandboxes SET mounts = '[{"slug":"team","connection":"con_1","kind":"volume","path":"a"}]';
UPDATE sandboxes SET endings = '[{"from":1700000000000000,"until":1700000000000001,"reason":"full"}]';
UPDATE executions SET start = 'cold', hint = 'try this';
UPDATE executions SET files = '{"files":[{"name":"out/a","bytes":3}]}';
UPDATE tenants SET root_enabled = TRUE WHERE id = 'ten_1';
UPDATE plans SET max_request_rate = 7, max_key_request_rate = 5, max_upload_rate = 1024, max_key_upload_rate = 512 WHERE name = 'old';
INSERT INTO models (id, name, provider, upstream, base_url, api_key, prices, context, max_output, capabilities, all_tenants, tenants, created_at, updated_at)
    VALUES ('mdl_1', 'acme/large', 'openai', 'large-1', 'https://provider.example/v1', NULL, '{"input":2500000}', 8192, 0, '["tools"]', FALSE, '["ten_1"]', 1700000000000000, 1700000000000001);
INSERT INTO runs (id, tenant, key_id, environment, sandbox, keep, status, seq, holder, epoch, due_at, created_at)
    VALUES ('run_1', 'ten_1', 'key_1', 'env_1', 'sbx_1', 1000000, 'queued', 1, 'here', 3, 1700000000000002, 1700000000000001);
UPDATE models SET plans = '["pro"]';
INSERT INTO model_keys (id, tenant, model, base_url, api_key, created_at) VALUES ('mky_1', 'ten_1', 'mdl_1', 'https://provider.example/v1', 'sealed', 1700000000000000);
UPDATE plans SET max_outputs = 7 WHERE name = 'old';
UPDATE executions SET kept = 3;
INSERT INTO usage_days (tenant, day, source, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits, kept) VALUES ('ten_1', 1700006400000000, 'execute', 1, 1, 1, 1, 1, 0, 2.5, 3);
UPDATE executions SET run = 'run_1', windows = 2;
UPDATE tenants SET monthly_cost = 2.5 WHERE id = 'ten_1';
UPDATE plans SET max_response_rate = 7, max_key_response_rate = 5, max_token_rate = 1000, max_key_token_rate = 500 WHERE name = 'old';
INSERT INTO charges (tenant, at, id, key_id, kind, name, calls, input, cache_read, cache_write, output, reasoning, cost) VALUES ('ten_1', 1700000000000000, 'run_1/3/0', 'key_1', 'model', 'acme/large', 1, 10, 1, 2, 5, 3, 500);
INSERT INTO charge_days (tenant, day, kind, name, entries, calls, input, cache_read, cache_write, output, reasoning, cost) VALUES ('ten_1', 1700006400000000, 'model', 'acme/large', 1, 1, 10, 1, 2, 5, 3, 500);
INSERT INTO agents (id, tenant, slug, visibility, version, created_at) VALUES ('agt_1', 'ten_1', 'support', 'private', 1, 1700000000000000);
INSERT INTO agent_versions (agent, version, definition, created_at) VALUES ('agt_1', 1, 'sealed', 1700000000000001);
INSERT INTO sessions (id, tenant, key_id, environment, agent, agent_version, sandbox, about, run, events, waits, created_at, updated_at)
    VALUES ('sess_1', 'ten_1', 'key_1', 'env_1', 'agt_1', 1, 'sbx_1', 'sealed', '', 2, 1, 1700000000000000, 1700000000000001);
INSERT INTO session_events (session, seq, run, type, talk, at, event) VALUES ('sess_1', 2, 'run_1', 'tool_use', 1, 1700000000000000, 'sealed');
INSERT INTO session_calls (session, seq, call, tool, approve, answered) VALUES ('sess_1', 2, 'c1', 'run_code', 1, 0);
INSERT INTO session_queue (session, run, turn) VALUES ('sess_1', 'run_2', 'sealed');
UPDATE runs SET session = 'sess_1' WHERE id = 'run_1';
UPDATE environments SET allow_mcp = TRUE WHERE id = 'env_1';
UPDATE sessions SET budget_tokens = 100, budget_cost = 200, used_input = 3, used_output = 4, used_cost = 5, waits_until = 1700000000000002, webhook = 'sealed';
INSERT INTO skills (id, tenant, name, title, versions, created_at) VALUES ('skill_1', 'ten_1', 'report', '', 1, 1700000000000000);
INSERT INTO skill_versions (id, skill, number, about, content, bytes, created_at) VALUES ('skillver_1', 'skill_1', 1, '', '', 0, 1700000000000000);
INSERT INTO vaults (id, tenant, about, created_at, updated_at) VALUES ('vlt_1', 'ten_1', 'sealed', 1700000000000000, 1700000000000001);
INSERT INTO vault_credentials (id, vault, kind, identity, about, secret, version, created_at, updated_at)
    VALUES ('vcrd_1', 'vlt_1', 'static_bearer', 'sum', 'sealed', 'sealed', 1, 1700000000000000, 1700000000000001);
UPDATE sessions SET vaults = '["vlt_1"]';
INSERT INTO session_threads (id, session, turn, parent, agent, agent_version, name, status, events, used_input, used_output, used_cost, created_at)
    VALUES ('sthr_1', 'sess_1', 'run_1', '', 'agt_1', 1, 'sealed', 'running', 1, 2, 3, 4, 1700000000000000);
INSERT INTO session_thread_events (thread, seq, run, type, at, event) VALUES ('sthr_1', 1, 'run_3', 'message/user', 1700000000000000, 'sealed');
UPDATE sessions SET speaker = 'agt_1', speaker_version = 2;
UPDATE runs SET top = 'run_0' WHERE id = 'run_1';
UPDATE environments SET packages = '{"pip":["six==1.17.0"]}' WHERE id = 'env_1';
INSERT INTO package_builds (ref, executor, image, state, log, updated_at) VALUES ('packages:1', 'exe_1', 'packages-1', 'failed', '["no"]', 1700000000000000);
INSERT INTO files (id, tenant, about, bytes, state, created_at) VALUES ('file_1', 'ten_1', '', 5, 'there', 1700000000000000);
UPDATE session_threads SET archived_at = 1700000000000001, kept = 'sealed';
UPDATE environments SET isolation = 'key' WHERE id = 'env_1';
UPDATE executions SET isolation = 'key';
UPDATE tenants SET key_isolation_enabled = TRUE WHERE id = 'ten_1';
UPDATE plans SET key_isolation = TRUE WHERE name = 'old';
INSERT INTO tokens (id, tenant, key_id, hash, scopes, operations, session, sandbox, sandbox_session, sandbox_name, origins, max_cost, cost, max_executions, executions, created_at, expires_at)
    VALUES ('tok_9_1', 'ten_1', 'key_9', '37345678901234567890123456789012', '["read"]', '', '', '', '', '', '["https://app.example.com"]', 700, 5, 3, 2, 1700000000000000, 1700000000000001);
INSERT INTO idempotent_requests (tenant, caller, key, body, state, lease_until, answer, created_at) VALUES ('ten_1', 'key_9', 'k', 'sum', 'done', 0, 'sealed', 1700000000000000);
UPDATE runs SET sandbox = 'sbx_39' WHERE id = 'run_1';
UPDATE tokens SET rights = '["approve"]' WHERE id = 'tok_9_1';
INSERT INTO settings (name, value, updated_at) VALUES ('model_allow', '10.0.0.7', 1700000000000000);
INSERT INTO idempotent_objects (tenant, object, caller, key) SELECT tenant, 'sb_42', caller, key FROM idempotent_requests;
INSERT INTO installation (only_row, id) VALUES (1, 'ins_1');
INSERT INTO servers (executor, host, bus, blobs, volumes, seen_at) VALUES ('exe_1', 'host', 'bus', '', '', 9000000000000000);
UPDATE sandboxes SET image_warning = 'warning 44';
UPDATE sandboxes SET own_cpu = 0.5, own_memory = 7, own_disk = 8;
UPDATE snapshots SET disk_limit = 46 WHERE id = 'snap-0123456789abcdef';
UPDATE tenants SET deleted_at = 47, erased_at = 48 WHERE id = 'ten_1';
INSERT INTO activity_texts (tenant, trace_id, text, expires_at) VALUES ('ten_1', 'trc_1', 'sealed', 1700000000000002);
INSERT INTO approvals (id, tenant, key_id, environment, session, run, event, item, thread, agent, tool, server, arguments, status, created_at)
    VALUES ('apr_49', 'ten_1', 'key_9', 'env_1', 'sess_1', 'run_1', 2, '', '', 'agt_1', 'run_code', '', 'sealed', 'denied', 1700000000000001);
