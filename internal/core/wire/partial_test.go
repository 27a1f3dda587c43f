package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// inPieces reads a member of a text that comes in pieces of some bytes.
func inPieces(text string, size int) string {
	p := NewPartial("code")
	var out strings.Builder
	for text != "" {
		n := min(size, len(text))
		out.WriteString(p.Write(text[:n]))
		text = text[n:]
	}
	return out.String()
}

func TestPartial(t *testing.T) {
	for text, want := range map[string]string{
		`{"code":"print(1)"}`:                              "print(1)",
		`{"timeout":5,"code":"a"}`:                         "a",
		` { "x" : {"code":"no"} , "code" : "yes" } `:       "yes",
		`{"x":["code","no",{"code":"no"}],"code":"yes"}`:   "yes",
		`{"x":"code","code":"yes"}`:                        "yes",
		`{"x\"code":"no","co\u0064e":"yes"}`:               "yes",
		`{"code":"a\n\t\"\\\/\u00e9\ud83d\ude00é😀"}`:       "a\n\t\"\\/é😀é😀",
		`{"code":"\ud83dx\ude00\ud83d\ud83d\ude00\ud83d"}`: "\ufffdx\ufffd\ufffd😀\ufffd",
		`{"code":"\ud83d\n"}`:                              "\ufffd\n",
		`{"code":"first","code":"second"}`:                 "first",
		`{"code":"half`:                                    "half",
		`{"code":"half\u00`:                                "half",
		`{"code":"bad\x more"}`:                            "bad",
		`{"code":"bad\u12g4 more"}`:                        "bad",
		`{"code":5,"x":"no"}`:                              "",
		`["code","no"]`:                                    "",
		`"code"`:                                           "",
		`{}{"code":"no"}`:                                  "",
		``:                                                 "",
	} {
		for size := range 7 {
			if got := inPieces(text, size+1); got != want {
				t.Errorf("%s in pieces of %d: %q, want %q", text, size+1, got, want)
			}
		}
	}
}

// FuzzPartial: pieces come to what the whole says, and to the same wherever they are cut.
func FuzzPartial(f *testing.F) {
	f.Add("print(1)\n", "timeout", 3)
	f.Add("é😀\"\\\u2028</script>\x00", "code\"", 1)
	f.Add("\xff\xf0\x9f", "\xff", 2)
	f.Fuzz(func(t *testing.T, code, other string, size int) {
		size = max(1, size%64)
		if got, want := inPieces(code, size), inPieces(code, max(1, len(code))); got != want || !utf8.ValidString(got) {
			t.Errorf("%q in pieces of %d: %q, whole: %q", code, size, got, want)
		}
		if !utf8.ValidString(code) || !utf8.ValidString(other) || other == "code" {
			return
		}
		for _, member := range []any{other, []string{other, "code"}, map[string]string{"code": other}} {
			text, err := json.Marshal(map[string]any{other: member, "code": code})
			if err != nil {
				t.Fatal(err)
			}
			if got := inPieces(string(text), size); got != code {
				t.Errorf("%s in pieces of %d: %q", text, size, got)
			}
		}
	})
}
