package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"
)

// Setting describes one field of Config.
type Setting struct {
	Name    string // in the file, such as pool_size
	Env     string // such as ATOLL_POOL_SIZE
	Flag    string // without dashes, such as pool-size
	Group   string
	Default string // as it is written
	Shown   string // the default in words, where it is not one value
	Help    string
	Enum    []string // the only values; nil when any will do
	Secret  bool     // never printed

	field int
}

// Settings lists every setting in the order of Config.
func Settings() []Setting {
	t := reflect.TypeFor[Config]()
	out := make([]Setting, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if tag.Get("name") == "-" {
			continue // found out, not set
		}
		s := Setting{
			Name:    tag.Get("name"),
			Group:   tag.Get("group"),
			Default: tag.Get("default"),
			Shown:   tag.Get("shown"),
			Help:    tag.Get("help"),
			Secret:  tag.Get("secret") == "true",
			field:   i,
		}
		if enum := tag.Get("enum"); enum != "" {
			s.Enum = strings.Split(enum, ",")
		}
		s.Env, s.Flag = "ATOLL_"+strings.ToUpper(s.Name), strings.ReplaceAll(s.Name, "_", "-")
		if s.Shown == "" {
			s.Shown = s.Default
		}
		out = append(out, s)
	}
	return out
}

// set parses text into the setting's field of c.
func (s Setting) set(c *Config, text string) error {
	if s.Enum != nil && !slices.Contains(s.Enum, text) {
		return fmt.Errorf("must be one of %s", strings.Join(s.Enum, ", "))
	}
	field := reflect.ValueOf(c).Elem().Field(s.field)
	switch p := field.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(text))
	case *string:
		*p = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*p = n
	case *float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%q is not a number", text)
		}
		*p = f
	case *time.Duration:
		d, err := parseDuration(text)
		if err != nil {
			return err
		}
		*p = d
	case *map[string]string:
		m := map[string]string{}
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			return fmt.Errorf(`must be an object of strings such as {"LANG": "C.UTF-8"}`)
		}
		*p = m
	default:
		panic("config: no parser for " + field.Type().String()) // a new field's type, found by any test
	}
	return nil
}

// Value returns the setting's value in c as text, with secrets hidden.
func (s Setting) Value(c *Config) string {
	v := reflect.ValueOf(c).Elem().Field(s.field)
	if s.Secret && !v.IsZero() {
		return "(hidden)"
	}
	if v.Kind() == reflect.Map && v.Len() == 0 {
		return ""
	}
	if m, ok := v.Interface().(map[string]string); ok {
		text, _ := json.Marshal(m) // strings always can be; YAML reads it too
		return string(text)
	}
	return fmt.Sprint(v.Interface())
}

// parseDuration reads a duration with its unit, or a bare number of seconds.
func parseDuration(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s or 1h", text)
	}
	return d, nil
}

// Size is a number of bytes, written with or without a unit: 512MiB, 10MB,
// 4096.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is not a size such as 512MiB", text)
	}
	*s = Size(n)
	return nil
}

// String returns the size in the largest unit that loses nothing.
func (s Size) String() string {
	for _, u := range []struct {
		name  string
		bytes Size
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s >= u.bytes && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// List is a list of words, written with commas between them.
type List []string

// UnmarshalText reads a list.
func (l *List) UnmarshalText(text []byte) error {
	*l = nil
	for word := range strings.SplitSeq(string(text), ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}

// String returns the list as it is written.
func (l List) String() string { return strings.Join(l, ",") }
