package sandboxcall

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/core/model"
)

// MaxStream limits the bytes of each stream that readers see of a call.
const MaxStream = 1 << 20

// maxToModel limits the bytes of each stream that the model sees: a larger output would fill its
// context.
const maxToModel = 32 << 10

// Section appends a stream to the text for a model: only its beginning and end if it is long.
// truncated says that text is only a part of the stream.
func Section(b *strings.Builder, name, text string, truncated bool) {
	if text == "" {
		return
	}
	if len(text) > maxToModel {
		half := maxToModel / 2
		text = strings.ToValidUTF8(text[:half], "") + fmt.Sprintf("\n[%d bytes omitted]\n", len(text)-2*half) + strings.ToValidUTF8(text[len(text)-half:], "")
	}
	fmt.Fprintf(b, "%s:\n%s\n", name, text)
	if truncated {
		fmt.Fprintf(b, "[the rest of %s is cut; write large results to a file]\n", name)
	}
}

// Result returns the result of a call with a text for the model.
func Result(text string, failed bool) model.Result {
	return model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: text}}}
}
