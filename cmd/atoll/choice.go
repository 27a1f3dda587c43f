package main

import "strings"

// choices lists the values of a flag in its help text, as "a, b or c".
func choices[T ~string](all []T) string {
	words := texts(all)
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// texts converts names of a type of their own to strings.
func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}
