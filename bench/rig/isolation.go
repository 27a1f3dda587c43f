package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// ShareKernels has executions of the server's key share kernels from now on.
func (s *Server) ShareKernels(ctx context.Context) error {
	key, err := os.ReadFile(filepath.Join(s.Data, "admin-key"))
	if err != nil {
		return err
	}
	for _, change := range [][2]string{
		{"", `{"key_isolation_enabled": true}`},
		{"/environments/default", `{"isolation": "key"}`},
	} {
		if err := s.patch(ctx, strings.TrimSpace(string(key)), "/v1/admin/tenants/dev"+change[0], change[1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) patch(ctx context.Context, key, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answered %d: %.400s", res.StatusCode, answer)
	}
	return err
}
