package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

func fullJob() execution.Job {
	return execution.Job{
		TraceID: "trc_0123", Tenant: "ten_1", Code: "print('ä\x00')", Language: execution.Node, Timeout: 90 * time.Second,
		Env:   map[string]string{"A": "1", "B": ""},
		Input: execution.Input{Args: []string{"a", ""}, Stdin: []byte("\x00\xff"), Files: map[string][]byte{"a/b": {0}, "c": nil}, Outputs: []string{"out/"}}, Image: "default", Limits: runtime.DefaultLimits(),
		BaseEnv: map[string]string{"C": "x"}, Turn: "turn", MaxOutput: 1 << 20, StoreOutput: 1 << 40,
		Secrets: []string{"s1", ""}, BoundSecrets: []execution.BoundSecret{{Placeholder: "atoll-bound-0", Value: "s1", Hosts: []string{"api.example.com"}}, {}}, Redact: []string{"jwt"},
		Permissions: runtime.Permissions{
			Network: runtime.NetworkPolicy{
				Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}, BlockedPorts: []uint16{25, 65535},
				AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")},
			},
			Filesystem: runtime.FilesystemPolicy{Writable: []string{}, ReadOnly: []string{"/data"}, Blocked: []string{"/root"}},
			Process:    runtime.ProcessPolicy{NoExec: true, BlockedCommands: []string{"rm -rf /"}, MaxProcesses: 10},
		},
		Thread: &execution.Thread{ID: "t-1", State: "abc", Quota: 1 << 40},
		Mounts: []storage.Mount{{Slug: "team", Connection: "con_1", Kind: storage.S3, Path: "a/b", ReadOnly: true, Target: storage.Target{
			Bucket: "b", Region: "r", Endpoint: "https://e", PathStyle: true, Account: "a",
			Credentials: storage.Credentials{AccessKeyID: "1", SecretAccessKey: "2", ServiceAccount: "{}", AccountKey: "3"},
		}}, {Slug: "volume"}},
	}
}

func fullResult() execution.Result {
	return execution.Result{
		Hint: "do", Files: execution.OutputFiles{Files: []execution.OutputFile{{Name: "out/a", Bytes: 1 << 40}}, Truncated: true},
		TraceID: "trc_0123", Status: execution.OOM, ExitCode: -1, Error: "memory", NotStarted: true, Kind: fault.Exhausted,
		Stdout: []byte("a\x00\xff"), Stderr: []byte("b"), StdoutBytes: 1 << 40, StderrBytes: 2, StdoutTruncated: true,
		StderrTruncated: true, Stored: true, OutputTruncated: true, LastSeq: 77,
		StartedAt: time.Unix(12, 34).UTC(), CompletedAt: time.Unix(-5, 999_999_999).UTC(), PeakMemory: 9, Start: execution.StartWarm, Reused: true,
		Thread: &execution.ThreadState{State: "def", Bytes: 1 << 40, Files: 7},
		Traffic: execution.Traffic{
			BytesIn: 1 << 40, BytesOut: 3, Hosts: []string{"a.example", "b.example"},
			Refused: []execution.Refusal{{Host: "c.example", Rule: "allowed_hosts"}, {Host: "10.0.0.1", Port: 65535, Rule: "floor"}},
		},
	}
}

// everyField fails when a field was added that fullJob or fullResult, and so
// perhaps the codec, does not know.
func everyField(t *testing.T, v any) {
	t.Helper()
	rv := reflect.ValueOf(v)
	for i := range rv.NumField() {
		if rv.Field(i).IsZero() {
			t.Errorf("%s.%s is zero", rv.Type(), rv.Type().Field(i).Name)
		}
	}
}

func TestCodec(t *testing.T) {
	everyField(t, fullJob())
	everyField(t, fullJob().Limits)
	everyField(t, fullJob().Permissions.Network)
	everyField(t, fullJob().Permissions.Filesystem)
	everyField(t, fullJob().Permissions.Process)
	everyField(t, *fullJob().Thread)
	everyField(t, *fullResult().Thread)
	everyField(t, fullResult())
	everyField(t, fullResult().Traffic)
	everyField(t, fullJob().Mounts[0])
	everyField(t, fullJob().Mounts[0].Target)
	everyField(t, fullJob().Mounts[0].Credentials)
	for _, j := range []execution.Job{fullJob(), {}} {
		g, got, err := decodeStart(encodeStart("gw", &j))
		if err != nil || g != "gw" || !reflect.DeepEqual(got, j) {
			t.Errorf("job came back as %q %+v, %v", g, got, err)
		}
	}
	for _, r := range []execution.Result{fullResult(), {}} {
		got, err := decodeEntry(encodeEnd(&r))
		if err != nil || !reflect.DeepEqual(*got.end, r) {
			t.Errorf("result came back as %+v, %v", got.end, err)
		}
	}
	refused := fault.Limit("concurrency", time.Unix(5, 0).UTC(), "too many")
	refused.Err = errors.New("detail")
	for _, a := range []answer{{code: answerDone}, {code: answerMoved, owner: "x"}, {code: answerFull, fault: refused}} {
		got, err := decodeAnswer(a.encode())
		if err != nil || got.code != a.code || got.owner != a.owner {
			t.Errorf("answer %+v came back as %+v, %v", a, got, err)
		}
		if a.fault != nil && (got.fault.Error() != a.fault.Error() || got.fault.Dimension != "concurrency" || !got.fault.ResetsAt.Equal(refused.ResetsAt) || got.fault.Kind != fault.Exhausted) {
			t.Errorf("fault came back as %+v", got.fault)
		}
	}
}

// A newer version adds fields at the end, which this one must not mind.
func TestCodecTail(t *testing.T) {
	j, r := fullJob(), fullResult()
	if _, got, err := decodeStart(append(encodeStart("gw", &j), 1, 2, 3)); err != nil || !reflect.DeepEqual(got, j) {
		t.Errorf("job with a tail: %+v, %v", got, err)
	}
	if got, err := decodeEntry(append(encodeEnd(&r), 1, 2, 3)); err != nil || !reflect.DeepEqual(*got.end, r) {
		t.Errorf("result with a tail: %+v, %v", got.end, err)
	}
	// A Result of before there was traffic, or were threads, ends where that
	// would begin.
	before := r
	before.Start, before.Hint, before.Files = "", "", execution.OutputFiles{}
	quiet := before
	quiet.Traffic = execution.Traffic{}
	older := quiet
	older.Thread = nil
	const noTail, noTraffic, noThread = 4, 4, 1 // bytes
	whole := map[int]execution.Result{
		len(encodeEnd(&before)) - noTail:                       before,
		len(encodeEnd(&quiet)) - noTail - noTraffic:            quiet,
		len(encodeEnd(&older)) - noTail - noTraffic - noThread: older,
	}
	for i, b := range [][]byte{encodeStart("gw", &j), encodeEnd(&r)} {
		for n := range b {
			var err error
			if want, ok := whole[n]; i == 1 && ok {
				if got, err := decodeEntry(b[:n]); err != nil || !reflect.DeepEqual(*got.end, want) {
					t.Errorf("an older version's result: %+v, %v", got.end, err)
				}
				continue
			}
			if i == 0 {
				_, _, err = decodeStart(b[:n])
			} else {
				_, err = decodeEntry(b[:n])
			}
			if err == nil {
				t.Errorf("message %d cut at %d of %d is understood", i, n, len(b))
			}
		}
	}
}

func seeds(f *testing.F) {
	j, r := fullJob(), fullResult()
	f.Add(encodeStart("gw", &j))
	f.Add(encodeEnd(&r))
	f.Add(appendEvent(appendEvent(appendEvent(beginEvents(nil, 2), stdoutCode, []byte("line\n")), keepaliveCode, nil), stderrCode, []byte{0}))
	f.Add(answer{code: answerFull, fault: fault.New(fault.Unavailable, "full")}.encode())
	f.Add([]byte{version, eventsEntry, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0})
}

func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, j, err := decodeStart(b); err == nil {
			g2, again, err := decodeStart(encodeStart(g, &j))
			if err != nil || g2 != g || again.Code != j.Code || len(again.Env) != len(j.Env) {
				t.Errorf("job %+v came back as %+v, %v", j, again, err)
			}
		}
		if e, err := decodeEntry(b); err == nil {
			if e.end != nil {
				again, err := decodeEntry(encodeEnd(e.end))
				if err != nil || !reflect.DeepEqual(again.end, e.end) {
					t.Errorf("result %+v came back as %+v, %v", e.end, again.end, err)
				}
			} else {
				if e.first() < 2 || e.last() < e.first() {
					t.Errorf("events from %d to %d", e.first(), e.last())
				}
				total := 0
				for _, ev := range e.events {
					total += len(ev.Data)
				}
				if total > len(b) {
					t.Errorf("%d bytes of events in %d", total, len(b))
				}
			}
		}
		if a, err := decodeAnswer(b); err == nil {
			if again, err := decodeAnswer(a.encode()); err != nil || again.code != a.code {
				t.Errorf("answer %+v came back as %+v, %v", a, again, err)
			}
		}
	})
}

func TestEntry(t *testing.T) {
	b := beginEvents(nil, 9)
	b = appendEvent(b, stdoutCode, []byte("out\n"))
	b = appendEvent(b, keepaliveCode, nil)
	b = appendEvent(b, stderrCode, bytes.Repeat([]byte{0xff}, execution.MaxChunk))
	e, err := decodeEntry(b)
	if err != nil || len(e.events) != 3 || e.first() != 9 || e.last() != 11 {
		t.Fatalf("%+v, %v", e, err)
	}
	if e.events[0].Stream != execution.Stdout || string(e.events[0].Data) != "out\n" || e.events[1].Stream != "" ||
		e.events[2].Stream != execution.Stderr || len(e.events[2].Data) != execution.MaxChunk {
		t.Errorf("events came back as %+v", e.events)
	}
}

func BenchmarkCodec(b *testing.B) {
	j := fullJob()
	j.Code = strings.Repeat("print('hello')\n", 1<<20/15)
	b.Run("binary", func(b *testing.B) {
		b.SetBytes(int64(len(j.Code)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := decodeStart(encodeStart("gw", &j)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(j.Code)))
		b.ReportAllocs()
		for b.Loop() {
			raw, err := json.Marshal(&j)
			if err == nil {
				err = json.Unmarshal(raw, &execution.Job{})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
