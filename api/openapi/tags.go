package openapi

import "github.com/danielgtaylor/huma/v2"

// tags are the groups of operations, in the order in which readers see them.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "sandbox", Description: "Run code once, in a sandbox of its own. The answer is JSON, a stream of events, or a webhook."},
		{Name: "executions", Description: "Records of executions: their status, output and files. A running one can be cancelled."},
		{Name: "files", Description: "Files that the tenant uploads for messages and sandboxes of sessions; folders of threads and of mounted storage connections, in one call."},
		{Name: "sandboxes", Description: "Named sandboxes, which live between calls: processes, files, code contexts, terminals, previews and snapshots."},
		{Name: "threads", Description: "Home directories that outlive their executions."},
		{Name: "tools", Description: "The tools that an agent is given, and the turns of `execute_code`."},
		{Name: "mcp", Description: "The same tools by the Model Context Protocol."},
		{Name: "environments", Description: "The tenant's environments: image, limits, network, permissions and variables of sandboxes."},
		{Name: "models", Description: "Models of providers that the tenant may name, in the form of OpenAI's list."},
		{Name: "responses", Description: "A model that writes and runs code, by the open Responses specification."},
		{Name: "containers", Description: "The named sandboxes of `code_interpreter` and their files, in the form of OpenAI's containers."},
		{Name: "agents", Description: "Agents as versioned resources: a model, what it is told, and the tools that it may call."},
		{Name: "skills", Description: "Folders of instructions and files in the open Agent Skills format, with versions."},
		{Name: "vaults", Description: "Credentials for sessions: tokens of MCP servers, and secrets that are sent to some hosts."},
		{Name: "sessions", Description: "Conversations with agents, which remember what was said and have one sandbox each."},
		{Name: "web", Description: "Searches of the web and for people, which the server makes for its callers."},
		{Name: "tokens", Description: "Short-lived tokens for web pages, which can do less than the key that makes them."},
		{Name: "usage", Description: "Usage of the tenant, and its price."},
		{Name: "activity", Description: "Log of runs with caller, place, result and cost."},
		{Name: "approvals", Description: "Tool calls that wait for a decision."},
		{Name: "admin", Description: "Tenants, keys, plans and everything else that an operator sets. It needs a key with the scope `admin`."},
		{Name: "operations", Description: "Probes and metrics of the server. They need no key."},
	}
}
