package run

import (
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
)

func TestHidePictures(t *testing.T) {
	result := func(id string) model.Item {
		return model.Item{Result: &model.Result{CallID: id, Parts: []model.Part{{Kind: model.PartText, Text: "x"}, {Kind: model.PartImage, Data: []byte("png")}}}}
	}
	kinds := func(items []model.Item) (all []model.PartKind) {
		for _, it := range items {
			all = append(all, it.Result.Parts[1].Kind)
		}
		return all
	}
	r := Request{Input: []model.Item{result("earlier"), result("given")}, Before: 1}
	q := model.Request{Items: append(r.Input, result("later"))}
	r.HidePictures(&q)
	if got := kinds(q.Items); !reflect.DeepEqual(got, []model.PartKind{model.PartText, model.PartImage, model.PartText}) || q.Items[0].Result.Parts[1].Text != unseen {
		t.Errorf("got %v", got)
	}
	if got := kinds(r.Input); got[0] != model.PartImage {
		t.Error("the conversation itself has changed")
	}
}
