package ratelimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// caller is a caller with a plan of small rates.
func callerOf(tenantID, key string) *tenant.Principal {
	return &tenant.Principal{
		Tenant: tenant.Tenant{ID: tenantID}, Key: tenant.Key{ID: key},
		Plan: tenant.Plan{Name: "small", MaxRequestRate: 20, MaxKeyRequestRate: 10, MaxUploadRate: 2 << 20, MaxKeyUploadRate: 1 << 20},
	}
}

// refused returns the fault of a refusal for a rate.
func refused(t *testing.T, err error, dimension string) *fault.Error {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Exhausted || f.Dimension != dimension {
		t.Fatalf("got %v, want a refusal for %s", err, dimension)
	}
	return f
}

// accepted counts the requests until one is refused.
func accepted(l *Limiter, p *tenant.Principal) (n int, err error) {
	for err == nil {
		if err = l.Request(p); err == nil {
			n++
		}
	}
	return n, err
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(nil)
		a, b, c := callerOf("ten_1", "key_a"), callerOf("ten_1", "key_b"), callerOf("ten_1", "key_c")
		n, err := accepted(l, a)
		if f := refused(t, err, KeyRequests); n != 100 || time.Until(f.ResetsAt) != 100*time.Millisecond {
			t.Errorf("%d requests of a key, then %v until %s", n, err, time.Until(f.ResetsAt))
		}
		if n, _ := accepted(l, b); n != 100 {
			t.Errorf("%d requests of a second key", n)
		}
		n, err = accepted(l, c)
		if refused(t, err, TenantRequests); n != 0 {
			t.Errorf("%d requests of a third key", n)
		}
		if n, _ := accepted(l, callerOf("ten_2", "key_d")); n != 100 {
			t.Errorf("%d requests of another tenant", n)
		}
		time.Sleep(time.Second)
		if n, _ := accepted(l, a); n != 10 {
			t.Errorf("%d requests a second later", n)
		}
		a.Plan.MaxKeyRequestRate, a.Plan.MaxRequestRate = 0, 0
		for range 1000 {
			if err := l.Request(a); err != nil {
				t.Fatalf("without a bound: %v", err)
			}
		}
	})
}

// What is refused for the tenant's rate is not counted for the key's.
func TestRefusalTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(nil)
		a := callerOf("ten_1", "key_a")
		a.Plan.MaxRequestRate = 1
		for range 50 {
			_ = l.Request(a)
		}
		a.Plan.MaxRequestRate = 0
		if n, _ := accepted(l, a); n != 90 {
			t.Errorf("%d requests are left to the key, want 90", n)
		}
	})
}

func TestIdleCallersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(nil)
		for i := range 1000 {
			if err := l.Request(callerOf(fmt.Sprint("ten_", i), fmt.Sprint("key_", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2*idle + time.Second)
		if err := l.Request(callerOf("ten_1", "key_1")); err != nil {
			t.Fatal(err)
		}
		if n := len(l.callers); n != 2 {
			t.Errorf("%d keys and tenants are remembered", n)
		}
	})
}

func TestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(nil)
		a := callerOf("ten_1", "key_a")
		body := func(size int, announced int64) (took time.Duration, err error) {
			from := time.Now()
			r, err := l.Body(t.Context(), a, announced, io.NopCloser(bytes.NewReader(make([]byte, size))))
			if err != nil {
				return 0, err
			}
			if n, err := io.Copy(io.Discard, r); err != nil || n != int64(size) {
				t.Fatalf("read %d of %d bytes: %v", n, size, err)
			}
			return time.Since(from), nil
		}
		if took, err := body(8<<20, 8<<20); err != nil || took != 0 {
			t.Errorf("within the burst: %s, %v", took, err)
		}
		_, err := body(4<<20, 4<<20)
		if f := refused(t, err, KeyUploadBytes); time.Until(f.ResetsAt) != 2*time.Second {
			t.Errorf("above it: until %s", time.Until(f.ResetsAt))
		}
		// 2 MiB are left at once, the others come at the rate.
		for _, announced := range []int64{12 << 20, -1} {
			if took, err := body(12<<20, announced); err != nil || took < 9*time.Second || took > 11*time.Second {
				t.Errorf("a stream of 12 MiB, %d announced: %s, %v", announced, took, err)
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(20 * time.Second)
		big := int64(11 << 20)
		if _, err := body(int(big), big); err != nil {
			t.Error(err)
		}
		_, err = body(100<<20, 100<<20)
		refused(t, err, KeyUploadBytes)
		if _, err := body(0, 0); err != nil {
			t.Errorf("no body: %v", err)
		}
	})
}

// TestServersDivideRates checks that the servers of an installation together give a caller the rates
// of its plan, also after one has joined.
func TestServersDivideRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := 1
		count := func() int { return servers }
		p := callerOf("ten_1", "key_a")
		l := New(count)
		if n, err := accepted(l, p); n != 100 || refused(t, err, KeyRequests) == nil {
			t.Errorf("%d requests on one server", n)
		}
		servers = 3
		time.Sleep(time.Minute)
		all := 0
		for range servers {
			n, _ := accepted(New(count), p)
			all += n
		}
		if all < 100 || all > 120 { // each share is rounded up
			t.Errorf("%d requests on three servers", all)
		}
		time.Sleep(time.Second)
		if n, _ := accepted(l, p); n != 40 { // a third of 10 a second, rounded up, for 10 seconds
			t.Errorf("%d requests on a server that shares", n)
		}
		// A body larger than the share's burst is not refused for ever.
		servers = 100
		if _, err := l.Body(t.Context(), p, 4<<20, io.NopCloser(bytes.NewReader(nil))); err != nil {
			t.Errorf("a body on one of 100 servers: %v", err)
		}
	})
}
