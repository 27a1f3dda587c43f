package run

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
)

const unseen = "[A picture, which this model cannot see.]"

// HidePictures replaces images in tool results for a model that does not support images. It keeps
// images in results that the request itself contains, so that the model rejects them.
func (r *Request) HidePictures(q *model.Request) {
	own := map[*model.Result]bool{}
	for i := r.Before; i < len(r.Input); i++ {
		own[r.Input[i].Result] = true
	}
	picture := func(p model.Part) bool { return p.Kind == model.PartImage }
	items := q.Items
	for i := range items {
		result := items[i].Result
		if result == nil || own[result] || !slices.ContainsFunc(result.Parts, picture) {
			continue
		}
		if &items[0] == &q.Items[0] {
			items = slices.Clone(items)
		}
		hidden := *result
		hidden.Parts = slices.Clone(result.Parts)
		for j := range hidden.Parts {
			if picture(hidden.Parts[j]) {
				hidden.Parts[j] = model.Part{Kind: model.PartText, Text: unseen}
			}
		}
		items[i].Result = &hidden
	}
	q.Items = items
}
