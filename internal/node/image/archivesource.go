package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// archive is an image archive that is being read.
type archive struct {
	io.ReadCloser
	name string // without the checksum
	sum  string // "sha256:…" that the whole file must have; "" for any
	size int64  // bytes; 0 if not known
}

var sumPattern = regexp.MustCompile(`^sha256=[0-9a-f]{64}$`)

// splitSource separates a file or URL from the checksum after it.
func splitSource(source string) (name, sum string, err error) {
	name, fragment, ok := strings.Cut(source, "#")
	if !ok {
		return source, "", nil
	}
	if !sumPattern.MatchString(fragment) {
		return "", "", fault.New(fault.Invalid, "%q ends in no checksum; want #sha256= and 64 hexadecimal digits", source)
	}
	return name, strings.Replace(fragment, "=", ":", 1), nil
}

// CheckSource reports why source can name no image archive: a file, or an https URL,
// or an http URL with its checksum.
func CheckSource(source string) error {
	name, sum, err := splitSource(source)
	if err != nil || !IsURL(name) {
		return err
	}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		return fault.New(fault.Invalid, "%q is not a URL", name)
	}
	if u.Scheme == "http" && sum == "" {
		return fault.New(fault.Invalid, "%q is fetched without TLS: add the file's checksum, #sha256=…", name)
	}
	return nil
}

// IsURL reports whether a source is fetched by HTTP.
func IsURL(source string) bool {
	return strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
}

// answerTime bounds how long a server may take to begin its answer.
const answerTime = time.Minute

// openArchive opens the file that a source names.
func openArchive(ctx context.Context, source string) (*archive, error) {
	if err := CheckSource(source); err != nil {
		return nil, err
	}
	name, sum, err := splitSource(source)
	if err != nil {
		return nil, err
	}
	a := &archive{name: name, sum: sum}
	if !IsURL(name) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(fault.NotFound, err, "there is no image archive "+name)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the image archive cannot be opened")
		}
		if info, err := f.Stat(); err == nil {
			a.size = info.Size()
		}
		a.ReadCloser = f
		return a, nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTime
	client := &http.Client{Transport: transport, CheckRedirect: redirects(sum)}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image archive's URL cannot be asked for")
	}
	res, err := client.Do(req) //nolint:bodyclose // the archive has it, and closes it
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok { // of redirects
			return nil, f
		}
		return nil, fault.Wrap(fault.Unavailable, err, "the image archive cannot be fetched")
	}
	a.ReadCloser = &body{res.Body, transport}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fault.New(fault.Unavailable, "the image archive cannot be fetched: %s answers %s", req.URL.Redacted(), res.Status), a.Close())
	}
	a.size = max(res.ContentLength, 0)
	return a, nil
}

// maxRedirects bounds the redirects of one fetch, as net/http does by default.
const maxRedirects = 10

// redirects returns a http.Client's CheckRedirect. It holds a redirect to the rule of
// CheckSource: without TLS only with the file's checksum, sum.
func redirects(sum string) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= maxRedirects:
			return fault.New(fault.Unavailable, "the image archive cannot be fetched: %s redirects more than %d times", via[0].URL.Redacted(), maxRedirects)
		case sum == "" && next.URL.Scheme != "https":
			return fault.New(fault.Invalid, "%s redirects to %s, which has no TLS: add the file's checksum, #sha256=…", via[0].URL.Redacted(), next.URL.Redacted())
		}
		return nil
	}
}

// body is an answer's, with the connections that were made for it.
type body struct {
	io.ReadCloser
	transport *http.Transport
}

// Read calls what a server or a network does to an answer a fault.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fault.Wrap(fault.Unavailable, err, "the image archive was not fetched to its end")
	}
	return n, err
}

func (b *body) Close() error {
	defer b.transport.CloseIdleConnections()
	if err := b.ReadCloser.Close(); err != nil {
		return fmt.Errorf("close the image archive: %w", err)
	}
	return nil
}
