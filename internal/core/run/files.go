package run

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Files returns the named files with contents in the request's own input, up to the limits of a
// program's input, for the run's tools.
func (r *Request) Files() map[string][]byte {
	files := map[string][]byte{}
	size := 0
	for i := r.Before; i < len(r.Input); i++ {
		for _, p := range filesOf(&r.Input[i]) {
			if _, twice := files[p.Name]; twice || size+len(p.Data) > execution.MaxInputBytes || len(files) == execution.MaxFiles {
				continue
			}
			files[p.Name] = p.Data
			size += len(p.Data)
		}
	}
	return files
}

// filesOf returns the parts of an item that a tool can receive as files.
func filesOf(it *model.Item) (files []*model.Part) {
	if it.Message == nil {
		return nil
	}
	for i := range it.Message.Parts {
		if p := &it.Message.Parts[i]; placeable(p) {
			files = append(files, p)
		}
	}
	return files
}

func placeable(p *model.Part) bool {
	return p.Kind == model.PartFile && p.URL == "" && execution.CheckFileName("input_file", p.Name) == nil && len(p.Data) <= execution.MaxInputBytes
}

// Place adds notes to a model request that say where files are, if the run's tools receive them. A
// model that cannot read files gets only the note. For files of earlier requests it says that they
// cannot be read, because a conversation may continue without the tools.
func (r *Request) Place(q *model.Request, reads bool) {
	note := "[The file %q, of %d bytes, is in the working folder of the sandbox.]"
	earlier := map[*model.Message]bool{}
	if !r.PlaceFiles {
		if reads {
			return
		}
		note = "[The file %q, of %d bytes, was given with this message. It cannot be read now.]"
		for i := range r.Input[:r.Before] {
			earlier[r.Input[i].Message] = true
		}
	}
	items := slices.Clone(q.Items)
	for i := range items {
		if len(filesOf(&items[i])) == 0 || !r.PlaceFiles && !earlier[items[i].Message] {
			continue
		}
		message := *items[i].Message
		message.Parts = nil
		for _, p := range items[i].Message.Parts {
			if reads || !placeable(&p) {
				message.Parts = append(message.Parts, p)
			}
			if placeable(&p) {
				message.Parts = append(message.Parts, model.Part{Kind: model.PartText, Text: fmt.Sprintf(note, p.Name, len(p.Data))})
			}
		}
		items[i].Message = &message
	}
	q.Items = items
}

// Used reports whether a call of a handler's tools succeeded earlier, in the run or in the
// conversation that it continues.
func (s *State) Used(handler string) bool {
	handled := map[string]bool{} // calls
	for i := range s.Conversation {
		it := &s.Conversation[i]
		if it.Call != nil {
			if t := toolNamed(s.Request.Tools, it.Call.Name); t != nil && t.Handler == handler {
				handled[it.Call.ID] = true
			}
		} else if it.Result != nil && !it.Result.Failed && handled[it.Result.CallID] {
			return true
		}
	}
	return false
}

// Fresh reports whether the call with a number is a handler's first in its step and no call in an
// earlier step succeeded. The handler's tools then do not have the input files yet.
func (s *State) Fresh(handler string, number int) bool {
	handled := map[string]bool{} // calls
	at := len(s.Request.Approved)
	for i := len(s.Request.Input); i < len(s.Conversation); i++ {
		it := &s.Conversation[i]
		switch {
		case it.Call != nil:
			if at++; at == number {
				return true
			}
			t := toolNamed(s.Request.Tools, it.Call.Name)
			if t == nil || t.Handler != handler {
				continue
			}
			if handled[it.Call.ID] = true; slices.ContainsFunc(s.pending, func(p Pending) bool { return p.Number == at }) {
				return false
			}
		case it.Result != nil && handled[it.Result.CallID] && !it.Result.Failed:
			return false
		}
	}
	return true
}
