package wire

// Bounds of a JSON text that a caller, a model or a program sends. A list of a few bytes for each
// element takes many times its text when it is decoded, so elements are counted before.
const (
	MaxDepth  = 100     // of lists and objects in each other
	MaxList   = 10_000  // elements of one list, or fields of one object
	MaxValues = 100_000 // elements and fields of the whole text
)

// ValueCost is about how many bytes a decoded element takes beside its text.
const ValueCost = 256

// Weigh counts the elements and fields of a JSON text, without decoding it: it takes no memory. It
// is an Invalid fault above a bound; noun begins its message. A text that is not JSON is weighed
// too, and is refused by whatever decodes it.
func Weigh(noun string, text []byte) (values int, err error) {
	var counts [MaxDepth + 1]int32
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case '[', '{':
			if depth++; depth > MaxDepth {
				return values, invalid("%s has lists and objects more than %d deep; send a flatter one", noun, MaxDepth)
			}
			counts[depth] = 1
		case ']', '}':
			depth = max(0, depth-1)
			continue
		case ',':
			if counts[depth]++; counts[depth] > MaxList {
				return values, invalid("%s has a list or object with more than %d elements; send fewer at a time", noun, MaxList)
			}
		default:
			continue
		}
		if values++; values > MaxValues {
			return values, invalid("%s has more than %d elements; send fewer at a time", noun, MaxValues)
		}
	}
	return values, nil
}
