package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

// Curl runs a program over HTTP by a curl of its own, over a connection of its own, and
// returns the time from fork to exit.
func (s *Server) Curl(ctx context.Context, p Program) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{"code": p.Code, "language": p.Language})
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "curl", "-sS", "--fail-with-body", s.URL+"/v1/sandbox/execute",
		"-H", "Authorization: Bearer "+s.key, "-H", "Content-Type: application/json", "-d", string(body))
	begun := time.Now()
	answer, err := cmd.Output()
	took := time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("curl: %w: %.400s", err, answer)
	}
	var out struct {
		Success bool
		Stdout  string
	}
	if json.Unmarshal(answer, &out) != nil || !out.Success {
		return 0, fmt.Errorf("the server answered: %.400s", answer)
	}
	return took, p.check(out.Stdout)
}
