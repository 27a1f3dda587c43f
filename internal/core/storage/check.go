package storage

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Forms of what providers accept. Buckets of S3-compatible services may have
// underscores and capitals.
var (
	bucketName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,221}[A-Za-z0-9]$`)
	accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	regionName  = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	accountKey  = regexp.MustCompile(`^[A-Za-z0-9+/]{16,512}={0,2}$`)
)

// Bounds of credentials, in bytes.
const (
	maxCredential     = 1024
	maxServiceAccount = 16 << 10
)

// Check reports the first thing about a connection that cannot work. Whether its
// endpoint may be spoken to, and whether anything answers there, is not looked at.
func (c *Connection) Check() error {
	if !Slug.MatchString(c.Slug) {
		return invalid("slug must be 1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends")
	}
	if !slices.Contains(Kinds, c.Kind) {
		return invalid("kind must be one of s3, gcs, azure, volume")
	}
	t := &c.Target
	if c.Kind == Volume {
		if *t != (Target{}) {
			return invalid("a volume is managed by the operator: omit bucket, endpoint and credentials")
		}
		return nil
	}
	if !bucketName.MatchString(t.Bucket) || strings.Contains(t.Bucket, "..") {
		return invalid("bucket must be the bucket's name, of 3 to 223 letters, digits, dots, hyphens and underscores")
	}
	if err := c.foreign(); err != nil {
		return err
	}
	if err := checkEndpoint(t.Endpoint); err != nil {
		return err
	}
	switch c.Kind {
	case S3:
		return t.checkS3()
	case GCS:
		return t.checkGCS()
	default:
		return t.checkAzure()
	}
}

// foreign refuses what means nothing to the connection's kind.
func (c *Connection) foreign() error {
	t := &c.Target
	for _, f := range []struct {
		name string
		set  bool
		of   Kind
	}{
		{"region", t.Region != "", S3},
		{"path_style", t.PathStyle, S3},
		{"access_key_id", t.AccessKeyID != "", S3},
		{"secret_access_key", t.SecretAccessKey != "", S3},
		{"service_account", t.ServiceAccount != "", GCS},
		{"account", t.Account != "", Azure},
		{"account_key", t.AccountKey != "", Azure},
	} {
		if f.set && f.of != c.Kind {
			return invalid("%s applies only to connections of kind %s; omit it", f.name, f.of)
		}
	}
	return nil
}

func checkEndpoint(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || strings.ContainsAny(raw, "#?") || strings.Trim(u.Path, "/") != "" || len(raw) > 2048 {
		return invalid("endpoint must be a URL of a host alone, such as https://s3.example.com")
	}
	return nil
}

func (t *Target) checkS3() error {
	switch {
	case t.Region != "" && !regionName.MatchString(t.Region):
		return invalid("region must be a region's name such as eu-central-1")
	case t.Region == "" && t.Endpoint == "":
		return invalid("region is required without an endpoint")
	case !credential(t.AccessKeyID):
		return invalid("access_key_id is required, of printable ASCII without spaces")
	case !credential(t.SecretAccessKey):
		return invalid("secret_access_key is required, of printable ASCII without spaces")
	}
	return nil
}

// googleToken is where Google gives out tokens. A key file that names another
// place would have this machine sign in there.
const googleToken = "https://oauth2.googleapis.com/token"

func (t *Target) checkGCS() error {
	var key struct {
		Type     string `json:"type"`
		Email    string `json:"client_email"`
		Key      string `json:"private_key"`
		TokenURI string `json:"token_uri"`
	}
	switch {
	case t.Endpoint != "":
		return invalid("endpoint applies only to s3 and azure; omit it")
	case t.ServiceAccount == "" || len(t.ServiceAccount) > maxServiceAccount || json.Unmarshal([]byte(t.ServiceAccount), &key) != nil:
		return invalid("service_account is required: the JSON of a service account's key file, as a string")
	case key.Type != "service_account" || key.Email == "" || key.Key == "":
		return invalid("service_account must be a key of the type service_account, with client_email and private_key")
	case key.TokenURI != "" && key.TokenURI != googleToken:
		return invalid("service_account: token_uri must be %s", googleToken)
	}
	return nil
}

func (t *Target) checkAzure() error {
	switch {
	case !accountName.MatchString(t.Account):
		return invalid("account is required: the storage account's name, of 3 to 24 lowercase letters and digits")
	case !accountKey.MatchString(t.AccountKey):
		return invalid("account_key is required: one of the storage account's keys, in base64")
	}
	return nil
}

func credential(s string) bool {
	return s != "" && len(s) <= maxCredential && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Secrets are the values that must not be seen in output.
func (t *Target) Secrets() []string {
	var out []string
	for _, s := range []string{t.SecretAccessKey, t.AccountKey} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
