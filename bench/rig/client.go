package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Execute runs a program over HTTP and returns the time until the whole answer
// was read. An answer that is not the program's full success is an error.
func (s *Server) Execute(ctx context.Context, p Program) (time.Duration, error) {
	return s.ExecuteAs(ctx, s.key, p)
}

// ExecuteAs is Execute with another key.
func (s *Server) ExecuteAs(ctx context.Context, key string, p Program) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{"code": p.Code, "language": p.Language})
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	status, answer, err := s.post(ctx, key, body)
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	var out struct {
		Success bool
		Stdout  string
		Stderr  string
		Error   any
	}
	if status != http.StatusOK || json.Unmarshal(answer, &out) != nil || !out.Success {
		return 0, fmt.Errorf("the server answered %d: %.400s", status, answer)
	}
	return took, p.check(out.Stdout)
}

// Attempt runs a program that may end as it likes, a time-out included. What is
// no end of a program is an error.
func (s *Server) Attempt(ctx context.Context, p Program, timeout time.Duration) error {
	body, err := json.Marshal(map[string]any{"code": p.Code, "language": p.Language, "timeout": int(timeout / time.Second)})
	if err != nil {
		return err
	}
	status, answer, err := s.post(ctx, s.key, body)
	if err == nil && status != http.StatusOK && status != http.StatusGatewayTimeout {
		err = fmt.Errorf("the server answered %d: %.400s", status, answer)
	}
	return err
}

// Reject sends a request that must be refused with a status, before any
// sandbox is involved.
func (s *Server) Reject(ctx context.Context, want int) error {
	key, body := s.key, []byte(`{"code": "print(1)"}`)
	if want == http.StatusUnauthorized {
		key = "sk-atoll-unknown"
	} else {
		body = []byte(`{"code": "print(1)", "language": "cobol"}`)
	}
	status, answer, err := s.post(ctx, key, body)
	if err == nil && status != want {
		err = fmt.Errorf("the server answered %d instead of %d: %.400s", status, want, answer)
	}
	return err
}

func (s *Server) post(ctx context.Context, key string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/sandbox/execute", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// Stream runs a program over HTTP and returns its events as they come. The
// caller closes them.
func (s *Server) Stream(ctx context.Context, p Program) (io.ReadCloser, error) {
	body, err := json.Marshal(map[string]any{"code": p.Code, "language": p.Language, "timeout": 600})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/sandbox/execute", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + s.key}, "Content-Type": {"application/json"}, "Accept": {"application/x-ndjson"}}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 400))
		return nil, fmt.Errorf("the server answered %d: %s", res.StatusCode, answer)
	}
	return res.Body, nil
}

// PeakRSS is the most memory that the server process has had, in bytes.
func (s *Server) PeakRSS() (int64, error) { return s.memory("VmHWM:") }

// RSS is the memory that the server process has now, in bytes.
func (s *Server) RSS() (int64, error) { return s.memory("VmRSS:") }

func (s *Server) memory(field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			var kib int64
			_, err := fmt.Sscan(rest, &kib)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", s.Pid, field)
}

// CPU is the processor time that the server process has used.
func (s *Server) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(stat), ") ") // the program's name has none
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is %q", s.Pid, stat)
	}
	var user, system int64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return time.Duration(user+system) * clockTick, err
}

// Call makes a request of the API, and returns the answer, which must be a
// success.
func (s *Server) Call(ctx context.Context, method, path string, in any) ([]byte, error) {
	req, err := s.request(ctx, s.key, method, path, in)
	if err != nil {
		return nil, err
	}
	return s.answer(req)
}

// Administer is Call with the key of the operator.
func (s *Server) Administer(ctx context.Context, method, path string, in any) ([]byte, error) {
	key, err := os.ReadFile(filepath.Join(s.Data, "admin-key"))
	if err != nil {
		return nil, err
	}
	req, err := s.request(ctx, strings.TrimSpace(string(key)), method, path, in)
	if err != nil {
		return nil, err
	}
	return s.answer(req)
}

// Refuse sends a JSON body that is made, and returns the status of the answer.
func (s *Server) Refuse(ctx context.Context, path string, body []byte) (status int, err error) {
	req, err := s.request(ctx, s.key, http.MethodPost, path, nil)
	if err != nil {
		return 0, err
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// Open is Call for an answer that comes bit by bit. The caller closes it.
func (s *Server) Open(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	req, err := s.request(ctx, s.key, method, path, in)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 400))
		return nil, fmt.Errorf("the server answered %d: %s", res.StatusCode, answer)
	}
	return res.Body, nil
}

func (s *Server) request(ctx context.Context, key, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

func (s *Server) answer(req *http.Request) ([]byte, error) {
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("the server answered %d: %.400s", res.StatusCode, answer)
	}
	return answer, err
}
