// Package provider lets blob.Open open buckets of Google Cloud Storage (gs://) and
// Azure (azblob://). Programs import it for that alone: their libraries are half of what
// a program with a store would otherwise link.
package provider

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
)
