package webhook

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// TestDevelopmentURL checks that development mode takes plain HTTP to loopback from its tenant alone.
func TestDevelopmentURL(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.Allowed().OpenLoopback("ten_dev")
	dev := outbound.For(t.Context(), "ten_dev")
	for _, good := range []string{"http://127.0.0.1:9000/hook", "http://localhost/", "https://[::1]:8443/x"} {
		if err := c.CheckURL(dev, good); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
		if err := c.CheckURL(outbound.For(t.Context(), "ten_other"), good); err == nil {
			t.Errorf("%s is taken from another tenant", good)
		}
	}
	for _, bad := range []string{"http://10.0.0.1/", "http://203.0.113.7/", "https://10.0.0.1/", "ftp://127.0.0.1/"} {
		if err := c.CheckURL(dev, bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestCheckURL(t *testing.T) {
	zone := serveDNS(t)
	zone.set("public.test", "203.0.113.7")
	zone.set("public6.test", "2606:4700:4700::1111")
	zone.set("inside.test", "10.0.0.9")
	zone.set("mixed.test", "203.0.113.7", "127.0.0.1")
	zone.set("hooks.intranet", "10.0.0.9")
	zone.set("sly.intranet", "169.254.169.254")
	c, err := New(Config{Resolver: zone.resolver(), Allow: []string{"hooks.intranet", "sly.intranet", "10.7.0.0/16"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{
		"https://public.test", "https://public.test/", "https://PUBLIC.test:8443/a/b?c=d&e=%20", "HTTPS://public.test./x",
		"https://public6.test/", "https://203.0.113.7/hook", "https://[2606:4700:4700::1111]:443/x", "https://nowhere.test/later",
		"https://hooks.intranet/x", "https://10.7.1.1/x", "https://xn--bcher-kva.test/", "https://public.test/" + strings.Repeat("a", 2048-20),
	} {
		if err := c.CheckURL(t.Context(), good); err != nil {
			t.Errorf("%s is refused: %v", clip(good), err)
		}
	}
	for bad, want := range map[string]string{
		"":                                                 "https://",
		"http://public.test/":                              "https://",
		"ftp://public.test/":                               "https://",
		"//public.test/":                                   "https://",
		"public.test/hook":                                 "https://",
		"https:public.test":                                "name a host",
		"https:///x":                                       "name a host",
		"https://:443/x":                                   "name a host",
		"https://u@public.test/":                           "user name",
		"https://u:p@public.test/":                         "user name",
		"https://public.test@127.0.0.1/":                   "user name",
		"https://public.test/#f":                           "fragment",
		"https://public.test/#":                            "fragment",
		"https://public.test:0/":                           "port",
		"https://public.test:70000/":                       "port",
		"https://public.test:/":                            "port",
		"https://public.test:x/":                           "URL such as",
		"https://pub lic.test/":                            "printable",
		"https://public.test/\x00":                         "printable",
		"https://public.test/\r\nX: y":                     "printable",
		"https://bücher.test/":                             "printable",
		"https://①②⑦.⓪.⓪.①/":                               "printable",
		"https://public.test\\@127.0.0.1/":                 "URL such as",
		"https://%31%32%37.0.0.1/":                         "URL such as",
		"https://127.0.0.1/":                               "private",
		"https://127.1/":                                   "host name",
		"https://2130706433/":                              "host name",
		"https://0x7f000001/":                              "host name",
		"https://0x7f.0.0.1/":                              "host name",
		"https://0177.0.0.1/":                              "host name",
		"https://127.0.0.1./":                              "host name",
		"https://public.test.0x7f/":                        "host name",
		"https://[::1]/":                                   "private",
		"https://[::ffff:127.0.0.1]/":                      "private",
		"https://[::ffff:7f00:1]/":                         "private",
		"https://[64:ff9b::7f00:1]/":                       "private",
		"https://[2002:7f00:1::]/":                         "private",
		"https://[fe80::1%25lo]/":                          "private",
		"https://169.254.169.254/latest":                   "private",
		"https://localhost/":                               "resolve",
		"https://LOCALHOST./":                              "resolve",
		"https://inside.test/":                             "resolve",
		"https://mixed.test/":                              "resolve",
		"https://sly.intranet/":                            "resolve",
		"https://-x.test/":                                 "host name",
		"https://a..test/":                                 "host name",
		"https://*.test/":                                  "host name",
		"https://" + strings.Repeat("a.", 140) + "test/":   "host name",
		"https://public.test/" + strings.Repeat("a", 2048): "2048",
	} {
		err := c.CheckURL(t.Context(), bad)
		if fault.KindOf(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			// What cannot be parsed at all may be refused by a later rule's words.
			if err != nil && fault.KindOf(err) == fault.Invalid && want == "URL such as" {
				continue
			}
			t.Errorf("%q: got %v, want a refusal with %q", clip(bad), err, want)
		}
	}
}

func clip(s string) string { return s[:min(len(s), 60)] }

// A URL that is accepted leads, as net/http reads it, to a public address or a
// name: never to an address in disguise.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://a.test/", "https://127.0.0.1", "https://[::ffff:1.2.3.4]:1/x?y#z", "https://0x7f.1/", "https://a@b:c@d/", "https://[fe80::1%25a]/"} {
		f.Add(s)
	}
	zone := serveDNS(f)
	c, err := New(Config{Resolver: zone.resolver()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if c.CheckURL(t.Context(), raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || len(raw) > maxURL {
			t.Fatalf("%q is accepted", raw)
		}
		host := u.Hostname()
		if a, err := netip.ParseAddr(host); err == nil {
			if !address.Public(a) {
				t.Fatalf("%q leads to %s", raw, a)
			}
		} else if address.Hostname(host) == "" {
			t.Fatalf("%q has the host %q", raw, host)
		}
	})
}
