package run

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
)

func withFiles(parts ...model.Part) model.Item {
	return model.Item{Message: &model.Message{Role: model.User, Parts: append(parts, model.Part{Kind: model.PartText, Text: "look"})}}
}

func file(name, data string) model.Part {
	return model.Part{Kind: model.PartFile, Name: name, Data: []byte(data), MediaType: "text/csv"}
}

// TestFiles: tools get the files of the new input that a program can be given, and the
// model is told where they are.
func TestFiles(t *testing.T) {
	r := Request{PlaceFiles: true, Before: 1, Input: []model.Item{
		withFiles(file("old.csv", "0")),
		withFiles(file("a.csv", "1"), file("", "unnamed"), file("../up", "x"), model.Part{Kind: model.PartFile, Name: "far", URL: "https://example.org/"}),
		withFiles(file("a.csv", "again"), file("large", strings.Repeat("x", execution.MaxInputBytes))),
	}}
	files := r.Files()
	if len(files) != 1 || string(files["a.csv"]) != "1" {
		t.Errorf("the tools get %d files", len(files))
	}
	for reads, kept := range map[bool]int{true: 7, false: 3} {
		q := model.Request{Items: r.Input}
		r.Place(&q, reads)
		var left int
		var told []string
		for _, it := range q.Items {
			for _, p := range it.Message.Parts {
				switch {
				case p.Kind == model.PartFile:
					left++
				case p.Text != "look":
					told = append(told, p.Text)
				}
			}
		}
		if left != kept || len(told) != 4 || !strings.Contains(told[1], `"a.csv", of 1 bytes`) {
			t.Errorf("reads %t: %d files are left, and the model is told %q", reads, left, told)
		}
	}
	if n := len(r.Input[1].Message.Parts); n != 5 {
		t.Errorf("the request has changed: %d parts", n)
	}
}

// TestPlaceEarlier: without the tools, a model that reads no files is told of those of
// earlier requests; it must refuse those of its own.
func TestPlaceEarlier(t *testing.T) {
	r := Request{Before: 1, Input: []model.Item{withFiles(file("old.csv", "0")), withFiles(file("new.csv", "1"))}}
	for reads, left := range map[bool][2]int{true: {1, 1}, false: {0, 1}} {
		q := model.Request{Items: r.Input}
		r.Place(&q, reads)
		for i := range q.Items {
			if n := len(filesOf(&q.Items[i])); n != left[i] {
				t.Errorf("reads %t: message %d has %d files", reads, i, n)
			}
		}
	}
}

// TestFresh: files are given until a call goes well, and once in a step.
func TestFresh(t *testing.T) {
	l := begin(t, Request{Input: []model.Item{withFiles(file("a.csv", "1"))}})
	fresh := func(number int, want bool) {
		t.Helper()
		if got := l.state.Fresh("h", number); got != want {
			t.Errorf("call %d is fresh: %t", number, got)
		}
	}
	l.calls("server", "server")
	fresh(1, true)
	fresh(2, false)
	l.called("c0", true)
	l.called("c1", true)
	l.calls("server")
	fresh(3, true)
	l.called("c0", false)
	l.calls("server")
	fresh(4, false)
}
