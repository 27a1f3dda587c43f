package filetool

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestAnswer(t *testing.T) {
	want := Answer{Bytes: 7, Count: 2, Paths: 2, Truncated: true, Body: []byte("a b\nc\ntext\nmore")}
	var b bytes.Buffer
	if _, err := want.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b.Bytes())
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if paths, text := got.Split(); !reflect.DeepEqual(paths, []string{"a b", "c"}) || text != "text\nmore" {
		t.Errorf("got %q and %q", paths, text)
	}
}

func TestAnswerIsBounded(t *testing.T) {
	for _, text := range []string{
		"", "{}", "x\n", "[]\n", `{"bytes":-1}` + "\n", `{"bytes":1e300}` + "\n", `{"paths":2}` + "\na\n", `{"other":1}` + "\n",
		`{"bytes":1` + strings.Repeat(" ", maxHead) + "}\n", "{}\n" + strings.Repeat("x", MaxBody+1),
		`{"paths":1001}` + "\n" + strings.Repeat("x\n", 1001),
	} {
		if a, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.40q is taken as %+v", text, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"bytes\":7,\"paths\":1}\na\nb"))
	f.Add([]byte("{\"failed\":true}\nno such file\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			return
		}
		paths, text := a.Split()
		if int64(len(paths)) != a.Paths || len(paths) > MaxMatches || len(text) > 3*MaxBody {
			t.Fatalf("%d paths and %d bytes of text of %+v", len(paths), len(text), a)
		}
	})
}
