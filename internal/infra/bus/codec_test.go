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
)

// fullJob returns a job in which every field is set.
func fullJob() execution.Job {
	j := jobOfV5()
	fill(reflect.ValueOf(&j).Elem())
	return j
}

// jobOfV5 returns the job in testdata/job.v5. Fields that were added later stay zero.
func jobOfV5() execution.Job {
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

// fullResult returns a result in which every field is set.
func fullResult() execution.Result {
	r := resultOfV5()
	fill(reflect.ValueOf(&r).Elem())
	return r
}

// resultOfV5 returns the result in testdata/result.v5. Fields that were added later stay zero.
func resultOfV5() execution.Result {
	return execution.Result{
		Files:   execution.OutputFiles{Files: []execution.OutputFile{{Name: "out/a", Bytes: 1 << 40}}, Truncated: true},
		TraceID: "trc_0123", Status: execution.OOM, ExitCode: -1, Error: "memory", NotStarted: true, Kind: fault.Exhausted,
		Stdout: []byte("a\x00\xff"), Stderr: []byte("b"), StdoutBytes: 1 << 40, StderrBytes: 2, StdoutTruncated: true,
		StderrTruncated: true, Stored: true, OutputTruncated: true, LastSeq: 77, Hint: "open the network",
		StartedAt: time.Unix(12, 34).UTC(), CompletedAt: time.Unix(-5, 999_999_999).UTC(), PeakMemory: 9, Start: execution.StartWarm, Reused: true,
		Thread: &execution.ThreadState{State: "def", Bytes: 1 << 40, Files: 7},
		Traffic: execution.Traffic{
			BytesIn: 1 << 40, BytesOut: 3, Hosts: []string{"a.example", "b.example"},
			Refused: []execution.Refusal{{Host: "c.example", Rule: "allowed_hosts"}, {Host: "10.0.0.1", Port: 65535, Rule: "floor"}},
		},
	}
}

// fill sets the zero fields of a struct, of the structs in it, and of the first elements of its slices.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.IsZero():
			f.Set(sample(f.Type()))
		case f.Kind() == reflect.Pointer && f.Elem().Kind() == reflect.Struct:
			fill(f.Elem())
		case f.Kind() == reflect.Slice && f.Len() > 0 && fillable(f.Type().Elem()):
			fill(f.Index(0))
		case fillable(f.Type()):
			fill(f)
		}
	}
}

// fillable reports whether a type is a struct without unexported fields.
func fillable(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.Field(0).IsExported() }

// sample returns a value of a type that is not its zero value.
func sample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(sample(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(t.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(sample(t.Key()), sample(t.Elem()))
	case reflect.Struct:
		switch p := v.Addr().Interface().(type) {
		case *time.Time:
			*p = time.Unix(99, 5).UTC()
		case *netip.Prefix:
			*p = netip.MustParsePrefix("203.0.113.0/24")
		default:
			fill(v)
		}
	default:
		panic("codec_test: no sample of " + t.String())
	}
	return v
}

func TestCodec(t *testing.T) {
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
	maps := map[string]bool{} // fields that are maps: any key is a valid entry
	mapFields(reflect.TypeFor[execution.Job](), maps)
	var add func(any)
	add = func(v any) {
		switch v := v.(type) {
		case map[any]any:
			for name, inner := range v {
				if name, ok := name.(string); !ok || !maps[name] {
					add(inner)
				}
			}
			v["Later"] = map[any]any{"a": []any{1, "b"}}
		case []any:
			for _, inner := range v {
				add(inner)
			}
		}
	}
	add(m)
	out, err := cbor.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(b[:head]), out...)
}

// mapFields adds the names of all fields of a type that are maps.
func mapFields(t reflect.Type, names map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type.Kind() == reflect.Map {
			names[f.Name] = true
		}
		if f.IsExported() {
			mapFields(f.Type, names)
		}
	}
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
	if gateway, got, err := decodeStart(read("job.v5")); err != nil || gateway != "gw" || !reflect.DeepEqual(got, jobOfV5()) {
		t.Errorf("%q, %+v, %v", gateway, got, err)
	}
	if got, err := decodeEntry(read("result.v5")); err != nil || !reflect.DeepEqual(*got.end, resultOfV5()) {
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
