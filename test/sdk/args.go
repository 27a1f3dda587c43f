package sdk

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	atoll "github.com/atoll-run/atoll/sdk/go"
)

// args are the arguments of a call that it has not taken yet.
type args struct{ left map[string]any }

// badArgument is why arguments are not those of a call.
type badArgument struct{ error }

func bad(format string, with ...any) { panic(badArgument{fmt.Errorf(format, with...)}) }

func (a *args) take(name string) (any, bool) {
	v, ok := a.left[name]
	delete(a.left, name)
	return v, ok
}

// unused is an error if there are arguments that the call did not take.
func (a *args) unused() error {
	if len(a.left) > 0 {
		return fmt.Errorf("the call does not take %v", slices.Sorted(maps.Keys(a.left)))
	}
	return nil
}

func (a *args) text(name string) string {
	switch v, ok := a.take(name); v := v.(type) {
	case string:
		return v
	case float64, bool:
		return fmt.Sprint(v)
	default:
		if ok {
			bad("%s is no text: %v", name, v)
		}
	}
	return ""
}

func (a *args) number(name string) int64 {
	v, ok := a.take(name)
	n, is := v.(float64)
	if ok && !is {
		bad("%s is no number: %v", name, v)
	}
	return int64(n)
}

func (a *args) flag(name string) bool {
	v, ok := a.take(name)
	b, is := v.(bool)
	if ok && !is {
		bad("%s is neither true nor false: %v", name, v)
	}
	return b
}

func (a *args) ms(name string) time.Duration { return time.Duration(a.number(name)) * time.Millisecond }

// query are these arguments as a query.
func (a *args) query(names ...string) url.Values {
	q := url.Values{}
	for _, name := range names {
		switch v, ok := a.take(name); v := v.(type) {
		case map[string]any: // metadata
			for key, value := range v {
				q.Set(name+"."+key, fmt.Sprint(value))
			}
		default:
			if ok {
				q.Set(name, fmt.Sprint(v))
			}
		}
	}
	return q
}

// body is all other arguments, as the type of a body.
func body[T any](a *args) (out T) {
	raw, err := json.Marshal(a.left)
	if err != nil {
		bad("%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		bad("%v", err)
	}
	a.left = nil
	return out
}

// options are those of the library that a step may set.
func (a *args) options() (all []atoll.Option) {
	if n, ok := a.take("max_retries"); ok {
		all = append(all, atoll.WithRetries(int(n.(float64))))
	}
	if on, ok := a.take("reconnect"); ok {
		all = append(all, atoll.WithReconnect(on.(bool)))
	}
	if key := a.text("idempotency_key"); key != "" {
		all = append(all, atoll.WithIdempotencyKey(key))
	}
	return all
}

func (a *args) sandbox() atoll.SandboxRef {
	return atoll.SandboxRef{Session: a.text("session"), Name: a.text("sandbox")}
}

// content is what a step uploads.
func (a *args) content() io.Reader {
	if n := a.number("zeros"); n > 0 {
		return io.LimitReader(zeros{}, n)
	}
	if encoded := a.text("content_base64"); encoded != "" {
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			bad("%v", err)
		}
		return bytes.NewReader(raw)
	}
	return strings.NewReader(a.text("content"))
}

// zeros are endless.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// maxShown bounds the bytes of a download that a result has.
const maxShown = 1 << 20

// download is what a step downloads, as results have it.
func download(get func(w io.Writer) error) (any, error) {
	sum, shown, n := sha256.New(), &bytes.Buffer{}, int64(0)
	err := get(writer(func(p []byte) {
		n += int64(len(p))
		sum.Write(p)
		if shown.Len() <= maxShown {
			shown.Write(p)
		}
	}))
	out := map[string]any{"bytes": n, "sha256": hex.EncodeToString(sum.Sum(nil))}
	if n <= maxShown {
		out["content_base64"] = base64.StdEncoding.EncodeToString(shown.Bytes())
		if utf8.Valid(shown.Bytes()) {
			out["content"] = shown.String()
		}
	}
	return out, err
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// data is a list as results have it.
func data[T any](all []T, err error) (any, error) { return map[string]any{"data": all}, err }
