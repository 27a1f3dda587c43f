package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWrongSettingOfVolumesIsFoundBeforeAnythingIsDone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for where, says := range map[string]string{
		"": "", dir: "", filepath.Join(dir, "new"): "", "s3://bucket?region=us-east-1": "",
		"file:///var/volumes": "write a folder as a path", "volumes": "absolute path", "ftp://bucket": "volumes: ", file: "is a file, not a folder", filepath.Join(file, "x"): "volumes: ",
	} {
		err := CheckVolumes(t.Context(), where)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, without %q", where, err, says)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it has left %v, %v", left, err)
	}
}
