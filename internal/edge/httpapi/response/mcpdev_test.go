package response

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestLoopbackServerWithoutRequest: in development mode the tenant dev names servers on this
// machine also where no request of it is at hand, as in hand-offs and queued turns. Others do not.
func TestLoopbackServerWithoutRequest(t *testing.T) {
	allow, err := outbound.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	allow.OpenLoopback("ten_dev")
	client := mcpclient.New(allow, "test")
	defer client.Close()
	for of, want := range map[tenant.ID]bool{"ten_dev": true, "ten_other": false} {
		p := &parser{ctx: t.Context(), tenant: of, mcp: mcptool.New(mcptool.Config{Client: client})}
		_, err := p.parseMCP("tools[0]", jsontext.Value(`{"type": "mcp", "server_label": "own", "server_url": "http://127.0.0.1:9000/mcp"}`))
		if (err == nil) != want {
			t.Errorf("%s: %v", of, err)
		}
	}
}
