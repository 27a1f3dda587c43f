// Package bucket reads and writes connections that lead to buckets, and mounts
// them as folders.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// gcsScope is what a service account is asked for.
const gcsScope = "https://www.googleapis.com/auth/devstorage.read_write"

// open opens the bucket of a connection. Whatever it sends goes to addresses that
// allow lets through.
func open(ctx context.Context, kind storage.Kind, t storage.Target, allow outbound.List) (*blob.Bucket, error) {
	client := httpClient(allow)
	switch kind {
	case storage.S3:
		return openS3(ctx, t, client)
	case storage.GCS:
		return openGCS(ctx, t, client)
	case storage.Azure:
		return openAzure(ctx, t, client)
	default:
		return nil, fmt.Errorf("a connection of the kind %q has no bucket", kind)
	}
}

func httpClient(allow outbound.List) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, // a proxy would connect where this process may not
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return allow.Dial(ctx, nil, network, address)
			},
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       30 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: time.Minute,
		},
	}
}

func openS3(ctx context.Context, t storage.Target, client *http.Client) (*blob.Bucket, error) {
	o := s3.Options{
		Region: t.Region, UsePathStyle: t.PathStyle, HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider(t.AccessKeyID, t.SecretAccessKey, ""),
		Logger:      logging.Nop{}, // what fails is told to the caller
		// A part of an object has no checksum, and not every service knows them.
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	}
	if o.Region == "" {
		o.Region = "us-east-1" // signatures need one; services without regions take any
	}
	if t.Endpoint != "" {
		o.BaseEndpoint = &t.Endpoint
	}
	return s3blob.OpenBucket(ctx, s3.New(o), t.Bucket, &s3blob.Options{RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired})
}

func openGCS(ctx context.Context, t storage.Target, client *http.Client) (*blob.Bucket, error) {
	key, err := google.JWTConfigFromJSON([]byte(t.ServiceAccount), gcsScope)
	if err != nil {
		return nil, errors.New("the service account's key cannot be read") // the error may hold it
	}
	tokens := key.TokenSource(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client))
	signed, err := gcp.NewHTTPClient(client.Transport, tokens)
	if err != nil {
		return nil, err
	}
	return gcsblob.OpenBucket(ctx, signed, t.Bucket, nil)
}

func openAzure(ctx context.Context, t storage.Target, client *http.Client) (*blob.Bucket, error) {
	key, err := container.NewSharedKeyCredential(t.Account, t.AccountKey)
	if err != nil {
		return nil, errors.New("the account's key cannot be read")
	}
	base := t.Endpoint
	if base == "" {
		base = "https://" + t.Account + ".blob.core.windows.net"
	}
	c, err := container.NewClientWithSharedKeyCredential(strings.TrimRight(base, "/")+"/"+t.Bucket, key,
		&container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: client}})
	if err != nil {
		return nil, err
	}
	return azureblob.OpenBucket(ctx, c, nil)
}

// reachTime is how long a bucket may take to answer when it is tried out.
const reachTime = 15 * time.Second

// Reach returns a fault, which says what to change, unless a connection's bucket
// answers and may be listed.
func (b *Buckets) Reach(ctx context.Context, c *storage.Connection) error {
	if err := checkEndpoint(ctx, c.Endpoint, b.Allow); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	o, err := b.Open(ctx, c.Tenant, &storage.Mount{Connection: c.ID, Kind: c.Kind, Path: c.Prefix, Target: c.Target})
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the connection cannot be opened; check its credentials")
	}
	defer o.Close()
	_, _, err = o.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: o.Prefix})
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case c.Kind == storage.Volume:
		return fault.Wrap(fault.Unavailable, err, "the bucket that the operator keeps volumes in cannot be listed; its settings are in the server's configuration")
	}
	return unreached(c, err)
}

// unreached says what is wrong with a connection whose bucket cannot be listed.
func unreached(c *storage.Connection, err error) error {
	code := ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	} else if azure, ok := errors.AsType[*azcore.ResponseError](err); ok {
		code = azure.ErrorCode
	}
	if code != "" {
		code = fmt.Sprintf(" (it says %.60q)", code)
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("there is no bucket %q there%s; check bucket, endpoint and region", c.Bucket, code))
	case gcerrors.PermissionDenied:
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the bucket %q may not be listed with these credentials%s", c.Bucket, code))
	}
	if code != "" {
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the bucket %q cannot be listed%s; check its credentials, region and name", c.Bucket, code))
	}
	return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the bucket %q cannot be reached; check its endpoint and that this server may connect to it", c.Bucket))
}

// checkEndpoint refuses endpoints that lead into the network that this server
// stands in, and plain HTTP, but for what the operator has opened.
func checkEndpoint(ctx context.Context, endpoint string, allow outbound.List) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "endpoint must be a URL")
	}
	if u.Scheme != "https" && !allow.Opens(context.Background(), u.Hostname()) {
		return fault.New(fault.Invalid, "endpoint must begin with https://; the operator can allow plain HTTP to a host with storage_allow")
	}
	return allow.Check(ctx, nil, "endpoint", u.Hostname())
}
