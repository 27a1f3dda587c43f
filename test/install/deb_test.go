package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// enter makes a Debian root filesystem of the tests' image, which mmdebstrap has
// made, with a writable layer over it, and runs a script of the test in it.
// Arguments: the image's folder, a scratch folder, the package, the script.
const enter = `set -e
image=$1 dir=$2 deb=$3 script=$4
mount -t tmpfs tmpfs "$dir"
mkdir "$dir/image" "$dir/upper" "$dir/work" "$dir/root"
mount -t erofs -o ro,loop "$image/rootfs.erofs" "$dir/image"
mount -t overlay -o "lowerdir=$dir/image,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
cd "$dir/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir images
mount --rbind -o ro "$image" images
cp "$deb" tmp/atoll.deb
cp "$script" tmp/script
mkdir old
pivot_root . old # in a chroot no user namespace can be made
cd /
umount -l old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -e /tmp/script
`

// inside is what happens in there. Each line that begins with "== " is checked.
const inside = `
dpkg -i /tmp/atoll.deb
echo "== version $(atoll version)"
echo "== conffiles $(dpkg-query -W -f '${Conffiles}' atoll | cut -d' ' -f2)"
echo "== data $(stat -c '%a %U' /var/lib/atoll)"
echo "== enabled $(find /etc/systemd -name 'atoll*' | wc -l)"
mkdir -p /var/lib/atoll/images
ln -s /images /var/lib/atoll/images/default
atoll doctor || echo "== doctor fails"
echo 'print(6 * 7)' >/tmp/six.py
echo "== run $(atoll run /tmp/six.py)"
echo 'pool_size: 3' >/etc/atoll/atoll.yaml
echo "== setting $(atoll config | grep '^pool_size')"
dpkg -i /tmp/atoll.deb
echo "== kept $(cat /etc/atoll/atoll.yaml)"
dpkg -r atoll
echo "== program $(test -e /usr/bin/atoll && echo there || echo gone)"
echo "== after remove $(cat /etc/atoll/atoll.yaml)"
dpkg -P atoll
echo "== config $(test -e /etc/atoll/atoll.yaml && echo there || echo gone)"
echo "== data kept $(ls /var/lib/atoll/images)"
`

// TestDebianPackage installs, uses, removes and purges the package.
func TestDebianPackage(t *testing.T) {
	img, err := atolltest.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	scratch := filepath.Join(dir, "scratch")
	if err := os.WriteFile(script, []byte(inside), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	out := command(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", img, scratch, sole(t, "*.deb"), script)
	var got []string
	for line := range strings.Lines(out) {
		if line, ok := strings.CutPrefix(strings.TrimSpace(line), "== "); ok {
			got = append(got, line)
		}
	}
	want := []string{
		"version atoll ", "conffiles /etc/atoll/atoll.yaml", "data 700 root", "enabled 0", "run 42", "setting pool_size: 3",
		"kept pool_size: 3", "program gone", "after remove pool_size: 3", "config gone", "data kept default",
	}
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] && !(i == 0 && strings.HasPrefix(got[i], want[i])) {
			t.Fatalf("got %q\nwant %q\n%s", got, want, out)
		}
	}
}
