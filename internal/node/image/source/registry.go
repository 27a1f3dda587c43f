package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// repositoryPath is the grammar of a repository's path. A component that is
// empty, "." or ".." does not match: a registry that cleans the paths of its URLs
// would serve another repository than the one that a rule has allowed.
//
// Source: OCI Distribution Specification 1.1, "Pulling manifests", <name>.
var repositoryPath = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// Repository returns the repository of a registry's reference, with its registry:
// that of Docker is index.docker.io.
func Repository(reference string) (string, error) {
	ref, err := parse(reference)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, fmt.Sprintf("%q is no image's reference: %v", reference, err))
	}
	return ref.Context().Name(), nil
}

// Canonical returns a registry's reference whole, with its registry and its tag or digest: all
// references of one image have the same.
func Canonical(reference string) (string, error) {
	ref, err := parse(reference)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, fmt.Sprintf("%q is no image's reference: %v", reference, err))
	}
	return ref.Name(), nil
}

// parse reads a registry's reference. It refuses a path that is not in its
// canonical form.
func parse(reference string, opts ...name.Option) (name.Reference, error) {
	ref, err := name.ParseReference(reference, opts...)
	if err != nil {
		return nil, err
	}
	if err := CheckPath(ref.Context().RepositoryStr()); err != nil {
		return nil, err
	}
	return ref, nil
}

// CheckPath says why a repository's path, without its registry, is not in its
// canonical form.
func CheckPath(path string) error {
	if !repositoryPath.MatchString(path) {
		return fmt.Errorf("the repository %q is not words of a-z and 0-9, joined by \".\", \"_\" or \"-\", with \"/\" between them", path)
	}
	return nil
}

// openRegistry finds an image by its registry reference. Credentials are those
// that docker login keeps.
func openRegistry(ctx context.Context, s string, opts Options) (_ *Image, err error) {
	var nameOpts []name.Option
	if opts.PlainHTTP {
		nameOpts = append(nameOpts, name.Insecure)
	}
	ref, err := parse(s, nameOpts...)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, fmt.Sprintf("%q is neither a path nor an image's reference: %v", s, err))
	}
	base, closed := remote.DefaultTransport, func() error { return nil }
	if opts.Reach != nil {
		guarded := newReach(ref.Context().RegistryStr(), *opts.Reach)
		base, closed = guarded, guarded.close
		defer func() {
			if err != nil {
				err = errors.Join(err, closed())
			}
		}()
	}
	desc, err := remote.Get(ref,
		remote.WithContext(ctx),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(tlsUnlessAsked{base: base, plain: opts.PlainHTTP, registry: ref.Context().RegistryStr()}),
	)
	if err != nil {
		return nil, remoteFault(ctx, err, s)
	}
	img, err := desc.Image()
	if err != nil {
		err = remoteFault(ctx, err, s)
		if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind == fault.Unavailable && !network(err) {
			e.Kind, e.Msg = fault.Invalid, fmt.Sprintf("the registry has no image %q for linux/%s", s, runtime.GOARCH)
		}
		return nil, err
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, remoteFault(ctx, err, s)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, remoteFault(ctx, err, s)
	}
	// The library reads the configuration whole, whatever its size.
	if manifest.Config.Size > metaLimit {
		return nil, fault.New(fault.Invalid, "the image's configuration is larger than %d bytes", metaLimit)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, remoteFault(ctx, err, s)
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, remoteFault(ctx, err, s)
	}
	out := &Image{Digest: digest.String(), Config: config, close: closed}
	for k, l := range layers {
		desc := manifest.Layers[k]
		if err := checkLayerType(desc.MediaType); err != nil {
			return nil, err
		}
		// The library would ask these, which the image's author has chosen.
		if len(desc.URLs) > 0 {
			return nil, fault.New(fault.Invalid, "the layer %s is at URLs of its own; layers are read from the registry alone", desc.Digest)
		}
		out.Layers = append(out.Layers, Layer{
			Size:   desc.Size,
			stored: desc.Digest.Hex,
			open: func(ctx context.Context) (io.ReadCloser, error) {
				r, err := l.Compressed()
				if err != nil {
					return nil, remoteFault(ctx, err, s)
				}
				return &remoteReader{ctx: ctx, ReadCloser: r, ref: s}, nil
			},
		})
	}
	return out, nil
}

// remoteReader gives a broken download the kind it deserves.
type remoteReader struct {
	io.ReadCloser
	ctx context.Context
	ref string
}

func (r *remoteReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = remoteFault(r.ctx, err, r.ref)
	}
	return n, err
}

// remoteFault tells what a registry's failure means for who asked.
func remoteFault(ctx context.Context, err error, ref string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		switch e.StatusCode {
		case http.StatusNotFound:
			return fault.Wrap(fault.NotFound, err, fmt.Sprintf("the registry has no image %q", ref))
		case http.StatusUnauthorized, http.StatusForbidden:
			return fault.Wrap(fault.Forbidden, err, fmt.Sprintf("the registry refuses access to %q; docker login keeps credentials that would be used", ref))
		}
	}
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the image %q cannot be read from its registry: %s", ref, why))
	}
	return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the image %q cannot be read from its registry", ref))
}

// network reports whether err came with, or instead of, a registry's answer.
func network(err error) bool {
	if _, ok := errors.AsType[*transport.Error](err); ok {
		return true
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// tlsUnlessAsked refuses requests without TLS, but to a registry on this machine:
// those to another machine that the library guesses, and those to any that a
// registry redirects to.
type tlsUnlessAsked struct {
	base     http.RoundTripper
	plain    bool
	registry string // the host that was asked for, with its port
}

func (t tlsUnlessAsked) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !t.plain && (r.URL.Host != t.registry || !loopback(r.URL.Hostname())) {
		return nil, fault.New(fault.Invalid, "the registry %s would be used without TLS; ask for plain HTTP if that is meant", r.URL.Host)
	}
	return t.base.RoundTrip(r)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
