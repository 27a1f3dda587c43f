# Makes the guest's root and becomes the guest. $1: root filesystem below the
# writable layer, $2: the guest's own files, $3: an empty folder. Runs as
# process 1 of new process and mount namespaces.
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$3"
mkdir "$3/upper" "$3/work" "$3/root"
mount -t overlay -o "lowerdir=$1,upperdir=$3/upper,workdir=$3/work" overlay "$3/root"
cd "$3/root"
mkdir -p proc dev tmp home/user .atoll
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom; do
  : >dev/$d
  mount --bind /dev/$d dev/$d
done
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mkdir dev/shm
chmod 1777 dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755,uid=1000,gid=1000 tmpfs home/user
mkdir .home
mount -t tmpfs -o mode=700 tmpfs .home
mkdir .home/home
chown 1000:1000 .home/home
mount --bind "$2" .atoll
exec chroot . /.atoll/atoll-guest
