package blob

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

func TestClaim(t *testing.T) {
	ctx := t.Context()
	url := atolltest.S3(t)
	dir := t.TempDir()
	for name, where := range map[string][2]string{
		"bucket": {url, url + "&prefix=other/"},
		"folder": {"file://" + filepath.Join(dir, "a"), "file://" + filepath.Join(dir, "b")},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := open(t, where[0]).Claim(ctx, "ins_1", "exe_1")
			if err != nil {
				t.Fatal(err)
			}
			if same, err := open(t, where[0]).Claim(ctx, "ins_1", "exe_2"); err != nil || same != first {
				t.Errorf("another server finds %q, not %q: %v", same, first, err)
			}
			if other, err := open(t, where[1]).Claim(ctx, "ins_1", "exe_1"); err != nil || other == first {
				t.Errorf("another bucket is %q: %v", other, err)
			}
			_, err = open(t, where[0]).Claim(ctx, "ins_2", "exe_1")
			if err == nil || !strings.Contains(err.Error(), `belongs to installation "ins_1"`) || !strings.Contains(err.Error(), "prefix=folder/") {
				t.Errorf("another installation: %v", err)
			}
		})
	}
	if left := files(t, filepath.Join(dir, "a")); len(left) != 1 {
		t.Errorf("a probe is left: %v", left)
	}

	missing := strings.Replace(url, "s3://bucket", "s3://missing", 1)
	if _, err := open(t, missing).Claim(ctx, "ins_1", "exe_1"); err == nil || !strings.Contains(err.Error(), "create the bucket, or correct its name") {
		t.Errorf("a bucket that is missing: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
	if _, err := open(t, url).Claim(ctx, "ins_1", "exe_1"); err == nil || !strings.Contains(err.Error(), "cannot write an object in the bucket: check") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("wrong keys: %v", err)
	}
}

// A folder of volumes keeps the files of its users.
func TestClaimFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	first, err := ClaimFolder(t.Context(), dir, "ins_1", "exe_1")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "draft.tmp")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := ClaimFolder(t.Context(), dir, "ins_1", "exe_2"); err != nil || again != first {
		t.Errorf("%q, not %q: %v", again, first, err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
}
