package main

import (
	"testing"

	"gocloud.dev/blob"
)

// TestBuckets: the program knows every kind of bucket that its settings name.
func TestBuckets(t *testing.T) {
	for _, scheme := range []string{"file", "s3", "gs", "azblob"} {
		if !blob.DefaultURLMux().ValidBucketScheme(scheme) {
			t.Errorf("%s:// is not known", scheme)
		}
	}
}
