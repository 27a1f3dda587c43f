package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// codec is the place of a column whose value the database has in another form.
type codec interface {
	sql.Scanner
	value() (any, error)
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

func (c coded[T, S]) value() (any, error) { return c.write(*c.at) }

// timeAt is a time, in microseconds since 1970.
func timeAt(t *time.Time) codec {
	return coded[time.Time, int64]{t, func(us int64) (time.Time, error) { return instant(us), nil }, func(t time.Time) (any, error) { return micros(t), nil }}
}

// zeroTimeAt is a time that is NULL while it is zero.
func zeroTimeAt(t *time.Time) codec {
	return coded[time.Time, int64]{t, func(us int64) (time.Time, error) { return instant(us), nil }, func(t time.Time) (any, error) { return maybeMicros(&t), nil }}
}

// maybeTimeAt is a time that may be missing.
func maybeTimeAt(t **time.Time) codec {
	read := func(us int64) (*time.Time, error) { t := instant(us); return &t, nil }
	return coded[*time.Time, int64]{t, read, func(t *time.Time) (any, error) { return maybeMicros(t), nil }}
}

// durationAt is a duration, in microseconds.
func durationAt(d *time.Duration) codec {
	read := func(us int64) (time.Duration, error) { return time.Duration(us) * time.Microsecond, nil }
	return coded[time.Duration, int64]{d, read, func(d time.Duration) (any, error) { return d.Microseconds(), nil }}
}

// maybeTextAt is text that is NULL while it is empty, such as a reference.
func maybeTextAt(s *string) codec {
	return coded[string, string]{s, func(s string) (string, error) { return s, nil }, func(s string) (any, error) { return orNone(s), nil }}
}

// textAt is text that an outer join may lack.
func textAt(s *string) codec {
	return coded[string, string]{s, func(s string) (string, error) { return s, nil }, func(s string) (any, error) { return s, nil }}
}

// boolAt is what an outer join may lack.
func boolAt(b *bool) codec {
	return coded[bool, bool]{b, func(b bool) (bool, error) { return b, nil }, func(b bool) (any, error) { return b, nil }}
}

// storableAt is text of which the database gets what it can keep.
func storableAt(s *string) codec {
	return coded[string, string]{s, func(s string) (string, error) { return s, nil }, func(s string) (any, error) { return storable(s), nil }}
}

// digestAt is a SHA-256.
func digestAt(d *[32]byte) codec {
	read := func(b []byte) (d [32]byte, err error) { copy(d[:], b); return d, nil }
	return coded[[32]byte, []byte]{d, read, func(d [32]byte) (any, error) { return d[:], nil }}
}

// filesAt are the files that an execution gave back, as JSON; "" for none.
func filesAt(f *execution.OutputFiles) codec {
	read := func(text string) (f execution.OutputFiles, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &f)
		}
		return f, err
	}
	return coded[execution.OutputFiles, string]{f, read, func(f execution.OutputFiles) (any, error) {
		return jsonOf(f, len(f.Files) == 0 && !f.Truncated)
	}}
}

// listAt is a list of text, as JSON; "" for none.
func listAt(l *[]string) codec {
	read := func(text string) (l []string, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &l)
		}
		return l, err
	}
	return coded[[]string, string]{l, read, func(l []string) (any, error) { return listOf(l) }}
}

// mapAt is pairs of text, as JSON; "" for none.
func mapAt(m *map[string]string) codec {
	write := func(m map[string]string) (any, error) {
		if err := checkMap(m); err != nil {
			return nil, err
		}
		return jsonOf(m, len(m) == 0)
	}
	return coded[map[string]string, string]{m, mapOf, write}
}

// daysAt is a duration of whole days.
func daysAt(d *time.Duration) codec {
	read := func(days int64) (time.Duration, error) { return time.Duration(days) * day, nil }
	return coded[time.Duration, int64]{d, read, func(d time.Duration) (any, error) { return int64(d / day), nil }}
}

// limitsAt is limits, as JSON.
func limitsAt(l *runtime.Limits) codec {
	read := func(text string) (runtime.Limits, error) {
		var row limitsRow
		err := json.Unmarshal([]byte(text), &row)
		return runtime.Limits(row), err
	}
	return coded[runtime.Limits, string]{l, read, func(l runtime.Limits) (any, error) { return jsonOf(limitsRow(l), false) }}
}

// permissionsAt is permissions, as JSON; "" for none.
func permissionsAt(p *runtime.Permissions) codec {
	return coded[runtime.Permissions, string]{p, permissionsOf, func(p runtime.Permissions) (any, error) { return permissionsText(p) }}
}

// packagesAt is a set of packages, as JSON; "" for none.
func packagesAt(s *requirement.Set) codec {
	read := func(text string) (s requirement.Set, err error) {
		if text == "" {
			return s, nil
		}
		var row packagesRow
		err = json.Unmarshal([]byte(text), &row)
		return requirement.Set(row), err
	}
	return coded[requirement.Set, string]{s, read, func(s requirement.Set) (any, error) { return jsonOf(packagesRow(s), s.Empty()) }}
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

// sealText seals text for a place; nil for none.
func (db *DB) sealText(plain, place string) []byte {
	if plain == "" {
		return nil
	}
	return db.seal.Seal([]byte(plain), place)
}

// openText is what sealText has sealed.
func (db *DB) openText(sealed []byte, place string) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	plain, err := db.seal.Open(sealed, place)
	return string(plain), err
}

// about says in an error what of which row it is about.
func about(err error, what, id string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%s of %s: %w", what, id, err)
}
