package engine

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/test/atolltest"
)

// ready counts the pool's sandboxes of a kind that have a network, and of all others that have one.
func ready(t *testing.T, e *Engine, like *execution.Job) (of, others int) {
	t.Helper()
	infos, err := e.host.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	variant := e.keyOf(like).variant
	for _, info := range infos {
		switch kind := info.Labels["pool"]; {
		case strings.Contains(kind, ":"+variant+"/"):
			of++
		case strings.Contains(kind, ":"):
			others++
		}
	}
	return of, others
}

// guestImages are the names of the guest images on disk.
func guestImages(t *testing.T, e *Engine) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{e.cfg.Disk, e.host.disk} {
		names, err := filepath.Glob(filepath.Join(dir, "guest-*.erofs"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	return all
}

// TestCertificatesChange changes the certificates of sandboxes while the engine runs: with every
// program that asks a server of HTTPS, with a warm pool, and with a sandbox that runs meanwhile.
func TestCertificatesChange(t *testing.T) {
	t.Parallel()
	t.Run("gvisor", func(t *testing.T) { t.Parallel(); certificatesChange(t, nil) })
	t.Run("oci", func(t *testing.T) {
		t.Parallel()
		certificatesChange(t, func(c *Config) { c.OCI, c.State = "crun", c.Disk })
	})
}

func certificatesChange(t *testing.T, with func(*Config)) {
	t.Helper()
	var ca []byte
	e, here, _ := hosts(t, true, func(c *Config) {
		ca, c.CA, c.PoolSize, c.Network.Egress.Authority = c.CA, nil, 1, nil
		if with != nil {
			with(c)
		}
	})
	connected := func(language execution.Language, code string) *execution.Job {
		return job(func(j *execution.Job) {
			j.Language, j.Code = language, strings.ReplaceAll(code, "URL", fmt.Sprintf("https://api.example.com:%d/", here.Port()))
			j.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}, AllowedCIDRs: []netip.Prefix{netip.PrefixFrom(here.Addr(), 32)}}
		})
	}
	const python = "import urllib.request\ntry: print(urllib.request.urlopen('URL').read().decode(), end='')\nexcept Exception: print('refused')"
	asks := map[string]*execution.Job{
		"Python":               connected(execution.Python, python),
		"Python with preloads": connected(execution.Python, "import pandas\n"+python),
		"Node.js":              connected(execution.Node, "fetch('URL').then(r => r.text()).then(s => process.stdout.write(s), () => console.log('refused'))"),
		"curl":                 connected(execution.Bash, "curl -fs URL || echo refused"),
	}
	like := asks["curl"]
	const trusted, refused = "thanks\n", "refused\n"
	ask := func(when, want string) {
		t.Helper()
		for name, j := range asks {
			if got, _ := run(t, e, j); got != want {
				t.Errorf("%s: %s printed %q, want %q", when, name, got, want)
			}
		}
	}
	change := func(ca []byte) {
		t.Helper()
		if err := e.SetCA(ca); err != nil {
			t.Fatal(err)
		}
	}
	warm := func(when string, inUse int) {
		t.Helper()
		atolltest.Until(t, time.Minute, when, func() bool { of, others := ready(t, e, like); return of >= len(asks) && others == inUse })
	}

	ask("at first", refused)
	warm("sandboxes are ready for a network", 0)
	base := guestImages(t, e)
	if len(base) != 1 {
		t.Fatalf("there are the guest images %q", base)
	}
	change(ca)
	warm("sandboxes with the new certificates are ready, before anything asks for them, and no others", 0)
	ask("with certificates", trusted)
	if got := guestImages(t, e); len(got) != 2 {
		t.Errorf("with certificates there are the guest images %q", got)
	}

	c, _, err := e.Claim(t.Context(), like)
	if err != nil {
		t.Fatal(err)
	}
	change(nil)
	ask("without certificates again", refused)
	warm("sandboxes without certificates are ready, and no others", 1)
	atolltest.Until(t, time.Minute, "the image with the certificates is gone", func() bool { return len(guestImages(t, e)) == 1 })
	if got := finish(t, c, like); got != trusted {
		t.Errorf("a sandbox that was in use printed %q", got)
	}
	for range 3 { // faster than the pool follows
		change(ca)
		change(nil)
	}
	change(ca)
	ask("after many changes", trusted)
	atolltest.Until(t, time.Minute, "one image with certificates is left", func() bool { return len(guestImages(t, e)) == 2 })
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.trusts) != 2 {
		t.Errorf("the engine knows %d sets of certificates", len(e.trusts))
	}
}

// TestBoundSecretsFollowCertificates: the host's own connections, which carry secrets, trust the
// certificates of now, also for a sandbox that runs.
func TestBoundSecretsFollowCertificates(t *testing.T) {
	t.Parallel()
	var ca []byte
	e, here, got := hosts(t, true, func(c *Config) { ca, c.CA = c.CA, nil })
	c, _, err := e.Claim(t.Context(), boundJob(here, execution.Bash))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	code := fmt.Sprintf("curl -sS -H 'Authorization: %s' https://api.example.com:%d/", standsFor, here.Port())
	for _, step := range []struct {
		ca         []byte
		says, told string
	}{{nil, "sandbox_ca_bundle", ""}, {ca, "thanks", "api.example.com 2 " + realValue}, {nil, "sandbox_ca_bundle", ""}} {
		if err := e.SetCA(step.ca); err != nil {
			t.Fatal(err)
		}
		if says, told := tell(t, c, execution.Bash, code), got.take(); !strings.Contains(says, step.says) || told != step.told {
			t.Errorf("the sandbox was told %q and the host %q, want %q and %q", says, told, step.says, step.told)
		}
	}
}

// TestClaimsWhileCertificatesChange: no execution fails for a change, and each has the certificates
// of its variables.
func TestClaimsWhileCertificatesChange(t *testing.T) {
	t.Parallel()
	var ca []byte
	e, here, _ := hosts(t, true, func(c *Config) { ca, c.PoolSize, c.Network.Egress.Authority = c.CA, 2, nil })
	j := job(func(j *execution.Job) {
		j.Code = `[ -e /.atoll/ca.pem ] && echo "there $NODE_EXTRA_CA_CERTS" || echo "none $NODE_EXTRA_CA_CERTS"`
		j.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedCIDRs: []netip.Prefix{netip.PrefixFrom(here.Addr(), 32)}}
	})
	var claims sync.WaitGroup
	var all atomic.Int64
	for range 4 {
		claims.Go(func() {
			for range 15 {
				c, _, err := e.Claim(t.Context(), j)
				if err != nil {
					t.Error(err)
					return
				}
				if got := finish(t, c, j); got != "there /.atoll/ca.pem\n" && got != "none \n" {
					t.Errorf("a program printed %q", got)
				}
				all.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { claims.Wait(); close(done) }()
	for n := int64(0); ; n++ {
		atolltest.Until(t, time.Minute, "more executions end", func() bool { return all.Load() >= min(2*n, 60) || t.Failed() })
		if err := e.SetCA([][]byte{nil, ca}[n%2]); err != nil {
			t.Error(err)
		}
		if n >= 30 {
			break
		}
	}
	<-done
	if err := e.SetCA(nil); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "one guest image is left", func() bool { return len(guestImages(t, e)) == 1 })
	atolltest.Until(t, time.Minute, "superseded environments are gone", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.envs) == e.lasting()
	})
}
