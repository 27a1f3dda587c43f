package sdk

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"
)

// match says how a value is not as wanted, "" if it is.
func match(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		if kind := matcher(want); kind != "" {
			return special(kind, want[kind], got)
		}
		in, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("want an object, got %s", short(got))
		}
		for name, w := range want {
			value, has := in[name]
			if !has && !isAny(w) {
				return fmt.Sprintf("%s: it is not there, in %s", name, short(in))
			}
			if why := match(w, value); why != "" {
				return name + ": " + why
			}
		}
		return ""
	case []any:
		in, ok := got.([]any)
		if !ok || len(in) != len(want) {
			return fmt.Sprintf("want %d elements, got %s", len(want), short(got))
		}
		for i := range want {
			if why := match(want[i], in[i]); why != "" {
				return fmt.Sprintf("%d: %s", i, why)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("want %s, got %s", short(want), short(got))
	}
	return ""
}

// matcher is the name of a matcher, "" if an object is none.
func matcher(v map[string]any) string {
	for name := range v {
		if len(v) == 1 && strings.HasPrefix(name, "$") {
			return name
		}
	}
	return ""
}

func isAny(v any) bool {
	m, ok := v.(map[string]any)
	return ok && matcher(m) == "$any"
}

func special(kind string, want, got any) string {
	ok := false
	switch kind {
	case "$any":
		return ""
	case "$match":
		text, is := got.(string)
		ok = is && regexp.MustCompile(fmt.Sprint(want)).MatchString(text)
	case "$type":
		ok = typeOf(got) == want
	case "$length":
		n := -1
		switch got := got.(type) {
		case string:
			n = utf8.RuneCountInString(got)
		case []any:
			n = len(got)
		}
		ok = float64(n) == want
		got = fmt.Sprintf("%d: %s", n, short(got))
	case "$contains":
		switch got := got.(type) {
		case string:
			ok = strings.Contains(got, fmt.Sprint(want))
		case []any:
			for _, element := range got {
				ok = ok || match(want, element) == ""
			}
		}
	case "$each":
		all, is := got.([]any)
		ok = is
		for i, element := range all {
			if why := match(want, element); why != "" {
				return fmt.Sprintf("%d: %s", i, why)
			}
		}
	default:
		return "there is no matcher " + kind
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("want %s %s, got %s", kind, short(want), short(got))
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	}
	return "object"
}

// matchStream says how events are not as wanted: the wanted ones in this order, with others
// between them unless whole.
func matchStream(want, got []any, whole bool) string {
	if whole {
		return match(gathered(want), gathered(got))
	}
	next := 0
	for _, ev := range got {
		if next < len(want) && match(want[next], ev) == "" {
			next++
		}
	}
	if next == len(want) {
		return ""
	}
	return fmt.Sprintf("event %d, %s, did not come, in %s", next, short(want[next]), short(got))
}

// gathered are events of which those that follow each other with data of one stream are one: how
// many pieces an output comes in depends on the machine.
func gathered(events []any) (all []any) {
	var last map[string]any
	for _, e := range events {
		ev, _ := e.(map[string]any)
		before, first := last["data"].(string)
		more, second := ev["data"].(string)
		if !first || !second || last["stream"] != ev["stream"] {
			last = maps.Clone(ev)
			all = append(all, last)
			continue
		}
		maps.Copy(last, ev)
		last["data"] = before + more
	}
	return all
}
