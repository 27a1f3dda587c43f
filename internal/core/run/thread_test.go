package run

import (
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
)

// TestOnto: the tools of the agent that a conversation moves to have the session's copies and the
// files of its messages, as they do in the turns that it begins.
func TestOnto(t *testing.T) {
	copies := []execution.FileRef{{ID: "file_1", Path: "/mnt/session/a.csv"}}
	q := Request{Input: []model.Item{withFiles(file("b.csv", "1"))}}
	(&Move{Request: &Request{Models: []string{"other"}, Copies: copies, PlaceFiles: true}}).Onto(&q)
	if len(q.Input) != 1 || !q.PlaceFiles || !reflect.DeepEqual(q.Copies, copies) {
		t.Errorf("%+v", q)
	}
	(&Move{Request: &Request{Models: []string{"m"}}}).Onto(&q)
	if !q.PlaceFiles || q.Copies != nil {
		t.Errorf("of an agent without a sandbox: %+v", q)
	}
}
