package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/usage"
)

func fullJob() execution.Job {
	return execution.Job{
		TraceID: "trc_0123", Tenant: "ten_1", Code: "print('ä\x00')", Language: execution.Node, Timeout: 90 * time.Second,
		Env:   map[string]string{"A": "1", "B": ""},
		Input: execution.Input{Args: []string{"a", ""}, Stdin: []byte("\x00\xff"), Files: map[string][]byte{"a/b": {0}, "c": nil}, Outputs: []string{"out/"}}, Image: "default", Limits: runtime.DefaultLimits(),
		BaseEnv: map[string]string{"C": "x"}, Turn: "turn", Isolation: execution.IsolationKey, Key: "key_1", MaxOutput: 1 << 20, StoreOutput: 1 << 40,
		Secrets: []string{"s1", ""}, BoundSecrets: []execution.BoundSecret{{Placeholder: "atoll-bound-0", Value: "s1", Hosts: []string{"api.example.com"}}, {}}, Redact: []string{"jwt"},
		Permissions: runtime.Permissions{
			Network: runtime.NetworkPolicy{
				Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}, BlockedPorts: []uint16{25, 65535},
				AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")},
			},
			Filesystem: runtime.FilesystemPolicy{Writable: []string{}, ReadOnly: []string{"/data"}, Blocked: []string{"/root"}},
			Process:    runtime.ProcessPolicy{Root: true, NoExec: true, BlockedCommands: []string{"rm -rf /"}, MaxProcesses: 10},
		},
		Extras: []string{"browser"}, NeedExtras: []string{"browser"},
		Window:  20 * time.Minute,
		Partial: true,
		StartBy: time.Unix(99, 5).UTC(),
		Thread:  &execution.Thread{ID: "t-1", State: "abc", Quota: 1 << 40},
		Files:   []execution.FileRef{{ID: "file_1", Path: "/mnt/session/uploads/a"}},
		Skills:  []execution.SkillRef{{Name: "charts", Version: "skv_1"}},
		Web:     &execution.WebAccess{Key: "key_1", Environment: "env_1", Held: true, Token: "secret", Left: new(usage.Money(7))},
		Mounts: []storage.Mount{{Slug: "team", Connection: "con_1", Kind: storage.S3, Path: "a/b", ReadOnly: true, Target: storage.Target{
			Bucket: "b", Region: "r", Endpoint: "https://e", PathStyle: true, Account: "a",
			Credentials: storage.Credentials{AccessKeyID: "1", SecretAccessKey: "2", ServiceAccount: "{}", AccountKey: "3"},
		}}, {Slug: "volume"}},
	}
}

func fullResult() execution.Result {
	return execution.Result{
		Files:   execution.OutputFiles{Files: []execution.OutputFile{{Name: "out/a", Bytes: 1 << 40}}, Truncated: true},
		TraceID: "trc_0123", Status: execution.OOM, ExitCode: -1, Error: "memory", NotStarted: true, Kind: fault.Exhausted,
		Stdout: []byte("a\x00\xff"), Stderr: []byte("b"), StdoutBytes: 1 << 40, StderrBytes: 2, StdoutTruncated: true,
		StderrTruncated: true, Stored: true, OutputTruncated: true, LastSeq: 77, Kept: 1 << 41, Hint: "open the network",
		StartedAt: time.Unix(12, 34).UTC(), CompletedAt: time.Unix(-5, 999_999_999).UTC(), PeakMemory: 9, Start: execution.StartWarm, Reused: true, Isolation: execution.IsolationKey, Windows: 2,
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
	everyField(t, *fullJob().Web)
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
	refused.Err, refused.RetryAfter = errors.New("detail"), 7*time.Second
	for _, a := range []answer{{code: answerDone}, {code: answerMoved, owner: "x"}, {code: answerFull, fault: refused}} {
		got, err := decodeAnswer(a.encode())
		if err != nil || got.code != a.code || got.owner != a.owner {
			t.Errorf("answer %+v came back as %+v, %v", a, got, err)
		}
		if a.fault != nil && (got.fault.Error() != a.fault.Error() || got.fault.Dimension != "concurrency" || !got.fault.ResetsAt.Equal(refused.ResetsAt) || got.fault.Kind != fault.Exhausted || got.fault.RetryAfter != refused.RetryAfter) {
			t.Errorf("fault came back as %+v", got.fault)
		}
	}
}

// later adds fields of a later version to every structure of a message.
func later(t *testing.T, head int, b []byte) []byte {
	t.Helper()
	var m any
	if err := cbor.Unmarshal(b[head:], &m); err != nil {
		t.Fatal(err)
	}
	var add func(any)
	add = func(v any) {
		switch v := v.(type) {
		case map[any]any:
			for _, inner := range v {
				add(inner)
			}
			v["Later"] = map[any]any{"a": []any{1, "b"}}
		case []any:
			for _, inner := range v {
				add(inner)
			}
		}
	}
	add(m)
	job, ok := m.(map[any]any)["Job"].(map[any]any)
	if ok {
		delete(job["Env"].(map[any]any), "Later")
		delete(job["Input"].(map[any]any)["Files"].(map[any]any), "Later")
		delete(job["BaseEnv"].(map[any]any), "Later")
	}
	out, err := cbor.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(b[:head]), out...)
}

// TestCodecOfALaterVersion adds fields everywhere, which this version ignores.
func TestCodecOfALaterVersion(t *testing.T) {
	j, r := fullJob(), fullResult()
	if _, got, err := decodeStart(later(t, 1, encodeStart("gw", &j))); err != nil || !reflect.DeepEqual(got, j) {
		t.Errorf("job with more fields: %+v, %v", got, err)
	}
	if got, err := decodeEntry(later(t, 2, encodeEnd(&r))); err != nil || !reflect.DeepEqual(*got.end, r) {
		t.Errorf("result with more fields: %+v, %v", got.end, err)
	}
	b := encodeStart("gw", &j)
	for _, v := range []byte{0, 4, version + 1} { // a version that has to know more, or was not CBOR
		b[0] = v
		if _, _, err := decodeStart(b); err == nil {
			t.Errorf("a job that needs version %d is understood", v)
		}
	}
}

// TestCodecOfEarlierVersions reads messages without the fields that were added last.
func TestCodecOfEarlierVersions(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	job := fullJob()
	job.Extras, job.NeedExtras = nil, nil
	job.Isolation, job.Key, job.StartBy, job.Partial = "", "", time.Time{}, false
	job.Permissions.Process.Root, job.Window, job.Web, job.Skills, job.Files = false, 0, nil, nil, nil // which that version did not have
	if gateway, got, err := decodeStart(read("job.v5")); err != nil || gateway != "gw" || !reflect.DeepEqual(got, job) {
		t.Errorf("%q, %+v, %v", gateway, got, err)
	}
	want := fullResult()
	want.Kept, want.Windows, want.Isolation = 0, 0, "" // nor these
	if got, err := decodeEntry(read("result.v5")); err != nil || !reflect.DeepEqual(*got.end, want) {
		t.Errorf("%+v, %v", got.end, err)
	}
	if got, err := decodeAnswer(read("answer.v5")); err != nil || !reflect.DeepEqual(got, fullAnswer()) {
		t.Errorf("%+v, %v", got, err)
	}
}

func fullAnswer() answer {
	f := fault.Limit("concurrency", time.Unix(5, 0).UTC(), "too many")
	f.Err = remoteError("detail")
	return answer{code: answerFull, fault: f}
}

// TestCodecIsStrict cuts messages and adds to them.
func TestCodecIsStrict(t *testing.T) {
	j, r := fullJob(), fullResult()
	for _, m := range []struct {
		b      []byte
		decode func([]byte) error
	}{
		{encodeStart("gw", &j), func(b []byte) error { _, _, err := decodeStart(b); return err }},
		{encodeEnd(&r), func(b []byte) error { _, err := decodeEntry(b); return err }},
		{fullAnswer().encode(), func(b []byte) error { _, err := decodeAnswer(b); return err }},
	} {
		if err := m.decode(m.b); err != nil {
			t.Fatal(err)
		}
		for n := range m.b {
			if m.decode(m.b[:n]) == nil {
				t.Errorf("a message cut at %d of %d is understood", n, len(m.b))
			}
		}
		if m.decode(append(bytes.Clone(m.b), 0)) == nil {
			t.Error("a message with a tail is understood")
		}
	}
	for name, b := range map[string]string{
		"a key twice":       "\xa2\x44Code\x01\x44Code\x01",
		"a tag":             "\xc0\xa1\x64Code\x01",
		"indefinite length": "\xbf\x64Code\x01\xff",
		"another case":      "\xa1\x64code\x01",
	} {
		if a, err := decodeAnswer([]byte(b)); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func seeds(f *testing.F) {
	j, r := fullJob(), fullResult()
	f.Add(encodeStart("gw", &j))
	f.Add(encodeEnd(&r))
	f.Add(appendEvent(appendEvent(appendEvent(beginEvents(nil, 2), stdoutCode, []byte("line\n")), keepaliveCode, nil), stderrCode, []byte{0}))
	f.Add(answer{code: answerFull, fault: fault.New(fault.Unavailable, "full")}.encode())
	f.Add([]byte{logVersion, eventsEntry, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0})
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
