package sandboxtool

import (
	"fmt"
	"strings"
)

// maxToModel bounds the bytes of each stream that the model is given: a larger output
// would fill its context.
const maxToModel = 32 << 10

// Section adds output to what a model is told: its beginning and its end, if it is long.
// truncated says that even text is not all of it.
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
