package model

import (
	"math"
	"strings"
	"testing"
)

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]Price{"0": 0, "2.50": 2_500_000, "0.075": 75_000, "0.000001": 1, "10000": MaxPrice, "0010.0": 10_000_000} {
		p, err := ParsePrice(text)
		if err != nil || p != want {
			t.Errorf("%s: %d, %v", text, p, err)
		}
		if again, err := ParsePrice(p.String()); err != nil || again != p {
			t.Errorf("%s is written as %s", text, p)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0.0000001", "10000.000001", "99999999999999999999", "1.2.3", " 1", "٣"} {
		if p, err := ParsePrice(text); err == nil {
			t.Errorf("%q is %s", text, p)
		}
	}
}

func FuzzParsePrice(f *testing.F) {
	for _, text := range []string{"0", "2.50", "10000", "1.", "9999.999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrice(text)
		if err != nil {
			return
		}
		if again, err := ParsePrice(p.String()); err != nil || again != p || p < 0 || p > MaxPrice {
			t.Fatalf("%q is %d, written as %s", text, p, p)
		}
	})
}

func TestCost(t *testing.T) {
	p := Prices{Input: 2_500_000, Output: 10_000_000, CacheRead: 250_000, CacheWrite: 3_125_000}
	c := p.Cost(Usage{Input: 1000, CacheRead: 600, CacheWrite: 100, Output: 50, Reasoning: 20})
	if c.Input.String() != "0.00075" || c.CacheRead.String() != "0.00015" || c.CacheWrite.String() != "0.0003125" || c.Output.String() != "0.0005" || c.Total.String() != "0.0017125" {
		t.Errorf("%s %s %s %s %s", c.Input, c.CacheRead, c.CacheWrite, c.Output, c.Total)
	}
	if got := c.Total.Dollars(); got != 0.0017125 {
		t.Errorf("%v dollars", got)
	}
	most := Prices{MaxPrice, MaxPrice, MaxPrice, MaxPrice}.Cost(Usage{Input: MaxTokens, CacheRead: MaxTokens, CacheWrite: MaxTokens, Output: MaxTokens})
	if most.Total <= 0 || most.Total > math.MaxInt64/2 {
		t.Errorf("the most is %s", most.Total)
	}
}

func TestSound(t *testing.T) {
	if u, ok := (Usage{Input: 10, CacheRead: 90, Output: 5, Reasoning: 20}).Sound(); !ok || u != (Usage{Input: 100, CacheRead: 90, Output: 25, Reasoning: 20}) {
		t.Errorf("%+v", u)
	}
	for _, u := range []Usage{{Input: -1}, {Output: MaxTokens + 1}, {Reasoning: math.MaxInt64}} {
		if _, ok := u.Sound(); ok {
			t.Errorf("%+v is sound", u)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"gpt-5", "acme/large", "llama3.2:3b", "a/b/c", strings.Repeat("x", MaxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", "a/../b", ".", "..", "a b", "ü", "a\n", "mdl_0123456789abcdef", strings.Repeat("x", MaxName+1), "a?b", "a#b", "a%2Fb"} {
		if err := CheckName(name); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
}
