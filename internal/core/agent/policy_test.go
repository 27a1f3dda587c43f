package agent

import "testing"

func init() {
	for name, c := range map[string]Class{runCode: Code, "shell": Code, "execute_code": Code, "read_file": Files, "web_search": Network, "sandbox_create": ""} {
		RegisterTool(name, c)
	}
}

func TestJudge(t *testing.T) {
	orders := Server{Name: "orders", URL: "https://orders.example"}
	program := Server{Name: "notes", Command: "python3", Args: []string{"notes.py"}}
	code, shell, read := Builtin(Sandbox, "run_code", true), Builtin(Sandboxes, "shell", false), Builtin(Sandbox, "read_file", true)
	search := Builtin(WebSearch, "web_search", true)
	for _, c := range []struct {
		policy Policy
		of     Subject
		server *Server
		want   Verdict
	}{
		{Policy{}, code, nil, Allowed},
		{Policy{Allow: []string{}}, code, nil, Denied},
		{Policy{Allow: []string{"sandbox"}}, code, nil, Allowed},
		{Policy{Allow: []string{"sandbox"}}, shell, nil, Denied},
		{Policy{Allow: []string{"sandbox"}}, search, nil, Denied},
		{Policy{Allow: []string{"web-search"}}, search, nil, Allowed},
		{Policy{Allow: []string{"sandbox"}, Deny: []string{"run_code"}}, code, nil, Denied},
		{Policy{Deny: []string{"web_search"}, Confirm: []string{"web_search"}}, search, nil, Denied},
		{Policy{Confirm: []string{"web-search"}}, search, nil, Asks},
		{Policy{Deny: []string{""}}, Subject{Names: []string{"", "other"}}, nil, Allowed},

		// A list that is written for one kind of sandbox holds for the other one.
		{Policy{Deny: []string{"run_code"}}, shell, nil, Denied},
		{Policy{Confirm: []string{"run_code"}}, Builtin(Sandboxes, "execute_code", true), nil, Asks},
		{Policy{Deny: []string{"sandbox"}}, shell, nil, Denied},
		{Policy{Deny: []string{"sandbox"}}, Builtin(Sandboxes, "sandbox_create", true), nil, Denied},
		{Policy{Deny: []string{"run_code"}}, Builtin(Sandboxes, "read_file", true), nil, Allowed},
		{Policy{Deny: []string{"run_code"}}, Subject{Names: []string{"shell"}}, nil, Allowed}, // the client's own

		// Classes.
		{Policy{Deny: []string{"code"}}, shell, nil, Denied},
		{Policy{Confirm: []string{"code"}}, code, nil, Asks},
		{Policy{Deny: []string{"code"}}, read, nil, Allowed},
		{Policy{Deny: []string{"files"}}, read, nil, Denied},
		{Policy{Deny: []string{"files"}}, shell, nil, Denied},
		{Policy{Deny: []string{"network"}}, code, nil, Denied},
		{Policy{Deny: []string{"network"}}, shell, nil, Allowed}, // without a network
		{Policy{Deny: []string{"network"}}, search, nil, Denied},
		{Policy{Deny: []string{"network"}}, orders.Remote("look", "orders__look", false), &orders, Denied},
		{Policy{Deny: []string{"code"}}, program.Remote("add", "notes__add", false), &program, Denied},
		{Policy{Deny: []string{"network"}}, program.Remote("add", "notes__add", false), &program, Allowed},
		{Policy{Allow: []string{"code"}}, shell, nil, Allowed},
		{Policy{Allow: []string{"files"}}, read, nil, Allowed},
		{Policy{Allow: []string{"files"}}, code, nil, Denied}, // it is for more than files
		{Policy{Allow: []string{"network"}}, orders.Remote("look", "orders__look", true), &orders, Denied},

		// A server chooses the names of its tools, and so they admit nothing.
		{Policy{Allow: []string{"run_code"}}, orders.Remote("run_code", "orders__run_code", true), &orders, Denied},
		{Policy{Allow: []string{"orders__run_code", "run_code", "code"}}, orders.Remote("run_code", "orders__run_code", true), &orders, Denied},
		{Policy{Allow: []string{"orders"}}, orders.Remote("run_code", "orders__run_code", true), &orders, Allowed},
		{Policy{Allow: []string{"orders/look"}}, orders.Remote("look", "orders__look", true), &orders, Allowed},
		{Policy{Allow: []string{"orders/look"}}, orders.Remote("cancel", "orders__cancel", true), &orders, Denied},
		{Policy{Deny: []string{"look"}}, orders.Remote("look", "orders__look", true), &orders, Denied},
		{Policy{Deny: []string{"orders__look"}}, orders.Remote("look", "orders__look", true), &orders, Denied},
		{Policy{Confirm: []string{"orders/look"}}, orders.Remote("look", "orders__look", true), &orders, Asks},
	} {
		if got := (&Definition{Policy: c.policy}).Judge(c.of, c.server); got != c.want {
			t.Errorf("%+v of %+v: %d, want %d", c.policy, c.of, got, c.want)
		}
	}
}

// TestKnownServers has agents that work was handed to name their servers after what the policy of
// another agent allows.
func TestKnownServers(t *testing.T) {
	of := func(name, url string) *Server { return &Server{Name: name, URL: url} }
	parent := &Definition{
		Servers: []Server{*of("orders", "https://orders.example"), *of("files", "https://files.example")}, Tools: []Tool{{Type: Custom, Name: "ask"}},
		Policy: Policy{Allow: []string{"sandbox", "run_code", "web-search", "orders", "ask", "code", "handoffs", "mail", "files", "look/up"}},
	}
	for _, c := range []struct {
		server *Server
		want   Verdict
	}{
		{of("orders", "https://orders.example"), Allowed}, {of("orders", "https://other.example"), Denied}, {&Server{Name: "orders", Command: "orders"}, Denied},
		{of("sandbox", "https://x.example"), Denied}, {of("run_code", "https://x.example"), Denied}, {of("web-search", "https://x.example"), Denied}, {of("code", "https://x.example"), Denied},
		{of("handoffs", "https://x.example"), Denied}, {of("ask", "https://x.example"), Denied}, {of("mail", "https://x.example"), Allowed}, {of("files", "https://files.example"), Allowed},
	} {
		if got := parent.Judge(c.server.Remote("run_code", "n", true), c.server); got != c.want || parent.Excludes(c.server, true) != (c.want == Denied) {
			t.Errorf("%+v: %d, %t", c.server, got, parent.Excludes(c.server, true))
		}
	}
	if parent.Excludes(of("look", "https://x.example"), true) {
		t.Error("a server is not asked, one tool of which is allowed")
	}
	// Where a server has the name of a class, an allow list means the server.
	if got := parent.Judge(Builtin(Sandbox, "read_file", true), nil); got != Allowed { // by the kind
		t.Error(got)
	}
	if got := parent.Judge(Builtin(Sandboxes, "read_file", true), nil); got != Denied {
		t.Error(got)
	}
}
