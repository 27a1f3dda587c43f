package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// FuzzReadArchive: whatever an archive holds, it is an image whose record can be
// read again, or an Invalid fault and no image.
func FuzzReadArchive(f *testing.F) {
	rootfs := bytes.Repeat([]byte("files"), 1000)
	sum := sha256.New()
	sum.Write(rootfs)
	record := fmt.Sprintf(`{"version":1,"architecture":%q,"rootfs":%q,"image":{"version":1,"name":"small","digest":%[2]q,"size":%d,"interpreters":[{"language":"bash","path":"/bin/bash"}]}}`,
		runtime.GOARCH, digestOf(sum), len(rootfs))
	f.Add([]byte(record), rootfs, int64(len(rootfs)))
	f.Add([]byte(`{"version":1}`), []byte{}, int64(0))
	f.Fuzz(func(t *testing.T, record, rootfs []byte, size int64) {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestFile, Size: int64(len(record))})
		_, _ = w.Write(record)
		if w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: rootfsFile, Size: size}) == nil {
			_, _ = w.Write(rootfs)
		}
		_ = w.Close() // it is incomplete where sizes differ, as an archive may be
		dir := t.TempDir()
		img, err := readArchive(&buf, dir, "", CheckName)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("not a fault of the archive: %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, recordFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a record was written: %v", err)
			}
			return
		}
		if again, err := readRecord(dir); err != nil || again.Name != img.Name || again.Size != img.Size {
			t.Fatalf("%v, %v", again, err)
		}
	})
}
