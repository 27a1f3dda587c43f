package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		strings.Repeat("{a,b}", 30),
		"{" + strings.Repeat("a,", 1000) + "a}",
		"{a,b}" + strings.Repeat("x", 40<<10),
		strings.Repeat("{a/,}{**/,}", 6000),
	} {
		begun := time.Now()
		_, err := parsePattern(pattern)
		if e, ok := errors.AsType[*proto.Error](err); !ok || e.Reason != proto.Invalid {
			t.Errorf("%s: %v", shortened(pattern), err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: refused after %s", shortened(pattern), took)
		}
	}
	_, err := parsePattern(strings.Repeat("{a,b}", 30))
	if err == nil || !strings.Contains(err.Error(), "more than 1000 patterns") || !strings.Contains(err.Error(), "use fewer braces") {
		t.Errorf("it says %v", err)
	}
	if all, err := parsePattern(strings.Repeat("{a,b}", 9)); err != nil || len(all) != 512 {
		t.Errorf("9 pairs are %d patterns, %v", len(all), err)
	}
}

// TestGlobEndsWithItsCaller: also in a folder in which nothing matches.
func TestGlobEndsWithItsCaller(t *testing.T) {
	dir, err := os.MkdirTemp("", "guestd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%04d", strings.Repeat("a", 200), i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g := &globber{}
	ended := make(chan error, 1)
	pattern := strings.Repeat("*a", 25) + strings.Repeat("{b,c}", 9) // takes minutes
	go func() { ended <- g.find(&proto.Glob{Dir: []byte(dir), Pattern: []byte(pattern)}) }()
	select {
	case err := <-ended:
		t.Fatalf("it takes no time, so this test shows nothing: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	g.gone.Store(true)
	begun := time.Now()
	atolltest.Until(t, 10*time.Second, "the walk ends", func() bool { return len(ended) > 0 })
	t.Logf("it ended %s after its caller", time.Since(begun))
}

func TestPatternsAreSplit(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		"{a,b}/*.{go,mod}": {"a|*.go", "a|*.mod", "b|*.go", "b|*.mod"},
		"{x,{y,}z}":        {"|x", "|yz", "|z"},
		"a,b":              {"|a,b"},
		`\{a,b\}*`:         {`|\{a,b\}*`},
		"[{,]{[}],b}":      {"|[{,][}]", "|[{,]b"},
		"/usr//b*//c/":     {"/usr|b*/c|folder"},
		"/":                {"/||folder"},
		`\/\*/**`:          {"/*|**"},
		"{}":               nil,
	} {
		all, err := parsePattern(pattern)
		var got []string
		for _, a := range all {
			s := a.base + "|" + strings.Join(a.names, "/")
			if a.folder {
				s += "|folder"
			}
			got = append(got, s)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", pattern, got, err)
		}
	}
}
