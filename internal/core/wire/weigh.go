package wire

import "fmt"

// Bounds of a JSON text that a caller, a model or a program sends. A list of a few bytes for each
// element takes many times its text when it is decoded, so elements are counted before.
const (
	MaxDepth  = 100     // of lists and objects in each other
	MaxList   = 10_000  // elements of one list, or fields of one object
	MaxValues = 100_000 // elements and fields of the whole text
)

// ValueCost is about how many bytes a decoded element takes beside its text.
const ValueCost = 256

// Counter counts the elements and fields of a JSON text that comes in pieces, without decoding it.
// The zero value is ready.
type Counter struct {
	counts  [MaxDepth + 1]int32 // of each list and object that is open
	depth   int
	values  int
	quoted  bool // within a string
	escaped bool // after a backslash in it
}

// Add counts a piece. Its error says which bound the text is above. A text that is not JSON is
// counted too, and is refused by whatever decodes it.
func (c *Counter) Add(piece []byte) error {
	for _, b := range piece {
		if c.quoted {
			switch {
			case b == '\n': // JSON strings end on their line, but a comment of an event stream may contain a lone quote
				c.quoted, c.escaped = false, false
			case c.escaped:
				c.escaped = false
			case b == '\\':
				c.escaped = true
			case b == '"':
				c.quoted = false
			}
			continue
		}
		switch b {
		case '"':
			c.quoted = true
			continue
		case '[', '{':
			if c.depth++; c.depth > MaxDepth {
				return fmt.Errorf("lists and objects nested more than %d levels deep; send a flatter one", MaxDepth)
			}
			c.counts[c.depth] = 1
		case ']', '}':
			c.depth = max(0, c.depth-1)
			continue
		case ',':
			if c.counts[c.depth]++; c.counts[c.depth] > MaxList {
				return fmt.Errorf("a list or object with more than %d elements; send fewer at a time", MaxList)
			}
		default:
			continue
		}
		if c.values++; c.values > MaxValues {
			return fmt.Errorf("more than %d elements; send fewer at a time", MaxValues)
		}
	}
	return nil
}

// Weigh counts the elements and fields of a JSON text. It is an Invalid fault above a bound; noun
// begins its message.
func Weigh(noun string, text []byte) (values int, err error) {
	var c Counter
	if err := c.Add(text); err != nil {
		return c.values, invalid("%s has %s", noun, err)
	}
	return c.values, nil
}
