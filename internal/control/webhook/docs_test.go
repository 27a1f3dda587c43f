package webhook

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// block is a fenced piece of a document.
var block = regexp.MustCompile("(?s)```(python|js|go)\n(.*?)```")

// TestDocumentedReceivers checks that the receivers in docs/how-to/receive-webhooks.md verify
// deliveries as the page describes.
func TestDocumentedReceivers(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/how-to/receive-webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string][]byte{}
	for _, m := range block.FindAllSubmatch(doc, -1) {
		if lang := string(m[1]); programs[lang] == nil { // the first of each
			programs[lang] = m[2]
		}
	}
	start := map[string]func(file string) []string{
		"python": func(file string) []string { return []string{"python3", file} },
		"js":     func(file string) []string { return []string{"node", file} },
		"go": func(file string) []string {
			bin := file + ".bin"
			if out, err := exec.Command("go", "build", "-o", bin, file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return []string{bin}
		},
	}
	for lang, command := range start {
		t.Run(lang, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "receiver."+lang)
			if err := os.WriteFile(file, programs[lang], 0o600); err != nil {
				t.Fatal(err)
			}
			args := command(file)
			for _, secret := range []string{"a plain secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="} {
				receive(t, args, secret)
			}
		})
	}
}

// receive starts a receiver and sends it genuine and false messages.
func receive(t *testing.T, args []string, secret string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, fmt.Sprintf("PORT=%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()

	body := []byte(`{"event":"execution.completed"}`)
	e := &execution.Execution{TraceID: "trc_1", Webhook: execution.WebhookTarget{Secret: secret}}
	post := func(at time.Time, body []byte, spoil func(http.Header)) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", port), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		sign(req.Header, MessageID(e.TraceID), e.Webhook.Secret, []byte(`{"event":"execution.completed"}`), at)
		spoil(req.Header)
		var status int
		atolltest.Until(t, 20*time.Second, "the receiver answers", func() bool {
			req.Body, _ = req.GetBody()
			res, err := http.DefaultClient.Do(req)
			if err == nil {
				res.Body.Close()
				status = res.StatusCode
			}
			return err == nil
		})
		return status
	}
	as := func(http.Header) {}
	for name, got := range map[string]int{
		"genuine":         post(time.Now(), body, as) - 204,
		"another body":    post(time.Now(), append(bytes.Clone(body), ' '), as) - 401,
		"old":             post(time.Now().Add(-time.Hour), body, as) - 401,
		"another id":      post(time.Now(), body, func(h http.Header) { h.Set("webhook-id", "evt_2") }) - 401,
		"unsigned":        post(time.Now(), body, func(h http.Header) { h.Del("webhook-signature") }) - 401,
		"two signatures":  post(time.Now(), body, func(h http.Header) { h.Set("webhook-signature", "v1,xx "+h.Get("webhook-signature")) }) - 204,
		"false signature": post(time.Now(), body, func(h http.Header) { h.Set("webhook-signature", "v1,xx") }) - 401,
	} {
		if got != 0 {
			t.Errorf("%s with the secret %s: the status is off by %d", name, secret, got)
		}
	}
}
