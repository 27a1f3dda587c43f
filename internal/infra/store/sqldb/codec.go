package sqldb

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Codec reads and writes a field that the database stores in another form.
type Codec interface {
	sql.Scanner
	Value() (any, error)
}

// coded is a codec for a T that is stored as an S. NULL is read as the zero T.
type coded[T, S any] struct {
	at    *T
	read  func(S) (T, error)
	write func(T) (any, error)
}

// Scan implements sql.Scanner.
func (c coded[T, S]) Scan(src any) error {
	var zero T
	*c.at = zero
	var stored sql.Null[S]
	if err := stored.Scan(src); err != nil || !stored.Valid {
		return err
	}
	v, err := c.read(stored.V)
	if err != nil {
		return err
	}
	*c.at = v
	return nil
}

func (c coded[T, S]) Value() (any, error) { return c.write(*c.at) }

// Coded returns the Codec of a T that is stored as an S. It reads NULL as the zero T.
func Coded[T, S any](at *T, read func(S) (T, error), write func(T) (any, error)) Codec {
	return coded[T, S]{at, read, write}
}

// Day is the unit of retentions and of the daily sums of use, which begin at 00:00 UTC.
const Day = 24 * time.Hour

// TimeAt stores a time in microseconds since 1970.
func TimeAt(t *time.Time) Codec {
	return Coded(t, func(us int64) (time.Time, error) { return Instant(us), nil }, func(t time.Time) (any, error) { return Micros(t), nil })
}

// ZeroTimeAt stores the zero time as NULL.
func ZeroTimeAt(t *time.Time) Codec {
	return Coded(t, func(us int64) (time.Time, error) { return Instant(us), nil }, func(t time.Time) (any, error) { return MaybeMicros(&t), nil })
}

// MaybeTimeAt stores a nil time as NULL.
func MaybeTimeAt(t **time.Time) Codec {
	read := func(us int64) (*time.Time, error) { t := Instant(us); return &t, nil }
	return Coded(t, read, func(t *time.Time) (any, error) { return MaybeMicros(t), nil })
}

// DurationAt stores a duration in microseconds.
func DurationAt(d *time.Duration) Codec {
	read := func(us int64) (time.Duration, error) { return time.Duration(us) * time.Microsecond, nil }
	return Coded(d, read, func(d time.Duration) (any, error) { return d.Microseconds(), nil })
}

// MaybeTextAt stores "" as NULL, as a reference to no row.
func MaybeTextAt(s *string) Codec {
	return Coded(s, func(s string) (string, error) { return s, nil }, func(s string) (any, error) { return orNone(s), nil })
}

// NullAt reads the NULL of an outer join as the zero value.
func NullAt[T any](at *T) Codec {
	return Coded(at, func(v T) (T, error) { return v, nil }, func(v T) (any, error) { return v, nil })
}

// StorableAt stores the Storable form of a text.
func StorableAt(s *string) Codec {
	return Coded(s, func(s string) (string, error) { return s, nil }, func(s string) (any, error) { return Storable(s), nil })
}

// DigestAt stores a SHA-256 as bytes.
func DigestAt(d *[32]byte) Codec {
	read := func(b []byte) (d [32]byte, err error) { copy(d[:], b); return d, nil }
	return Coded(d, read, func(d [32]byte) (any, error) { return d[:], nil })
}

// TextsAt stores a list of texts as JSON, and an empty list as "".
func TextsAt[T ~string](l *[]T) Codec {
	read := func(text string) (l []T, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &l)
		}
		return l, err
	}
	return Coded(l, read, func(l []T) (any, error) { return JSONOf(l, len(l) == 0) })
}

// ListAt is TextsAt for texts that callers choose. It rejects a text if CheckText does.
func ListAt(l *[]string) Codec {
	read := func(text string) (l []string, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &l)
		}
		return l, err
	}
	return Coded(l, read, func(l []string) (any, error) { return listOf(l) })
}

// MapAt stores pairs of text as JSON, and an empty map as "". It rejects text that CheckText rejects.
func MapAt(m *map[string]string) Codec {
	write := func(m map[string]string) (any, error) {
		if err := CheckMap(m); err != nil {
			return nil, err
		}
		return JSONOf(m, len(m) == 0)
	}
	return Coded(m, MapOf, write)
}

// DaysAt stores a duration in whole days.
func DaysAt(d *time.Duration) Codec {
	read := func(days int64) (time.Duration, error) { return time.Duration(days) * Day, nil }
	return Coded(d, read, func(d time.Duration) (any, error) { return int64(d / Day), nil })
}

// LimitsAt stores limits as JSON.
func LimitsAt(l *runtime.Limits) Codec {
	read := func(text string) (runtime.Limits, error) {
		var row limitsRow
		err := json.Unmarshal([]byte(text), &row)
		return runtime.Limits(row), err
	}
	return Coded(l, read, func(l runtime.Limits) (any, error) { return JSONOf(limitsRow(l), false) })
}

// PermissionsAt stores permissions as JSON, and the zero value as "".
func PermissionsAt(p *runtime.Permissions) Codec {
	return Coded(p, permissionsOf, func(p runtime.Permissions) (any, error) { return permissionsText(p) })
}

// PackagesAt stores a set of packages as JSON, and an empty set as "".
func PackagesAt(s *requirement.Set) Codec {
	read := func(text string) (s requirement.Set, err error) {
		if text == "" {
			return s, nil
		}
		var row packagesRow
		err = json.Unmarshal([]byte(text), &row)
		return requirement.Set(row), err
	}
	return Coded(s, read, func(s requirement.Set) (any, error) { return JSONOf(packagesRow(s), s.Empty()) })
}

// Stored forms. A name is never given another meaning.

// packagesRow is how packages are stored.
type packagesRow struct {
	Apt []string `json:"apt,omitempty"`
	Pip []string `json:"pip,omitempty"`
	NPM []string `json:"npm,omitempty"`
}

// limitsRow is how limits are stored.
type limitsRow struct {
	CPU       float64 `json:"cpu"`
	Memory    int64   `json:"memory"`
	Processes int     `json:"processes"`
	OpenFiles int     `json:"open_files"`
	Root      int64   `json:"root"`
	Tmp       int64   `json:"tmp"`
	Shm       int64   `json:"shm"`
	Inodes    int     `json:"inodes"`
}

// About adds the part and the id of a row to an error. It returns nil and sql.ErrNoRows unchanged.
func About(err error, what, id string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%s of %s: %w", what, id, err)
}

// JSONOf encodes a value as it is stored: as JSON, and as "" if it is empty.
func JSONOf[T any](v T, empty bool) (string, error) {
	if empty {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// MapOf decodes a map that MapAt has stored.
func MapOf(s string) (map[string]string, error) {
	if s == "" {
		return nil, nil
	}
	var m map[string]string
	err := json.Unmarshal([]byte(s), &m)
	return m, err
}

// CheckMap is CheckText for the keys and values of a map.
func CheckMap(m map[string]string) error {
	for k, v := range m {
		if err := CheckText([]any{k, v}); err != nil {
			return err
		}
	}
	return nil
}

// listOf is a list of text as it is stored.
func listOf(list []string) (string, error) {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	if err := CheckText(args); err != nil {
		return "", err
	}
	return JSONOf(list, len(list) == 0)
}

// Storable replaces the parts of a text that CheckText rejects by U+FFFD.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// BytesOf returns b, and empty bytes for nil, which would be stored as NULL.
func BytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// orNone is text as it is stored where the empty one means none.
func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}
