package confine

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// answer runs a filter as the kernel does.
func answer(t *testing.T, p program, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	var data [64]byte
	binary.LittleEndian.PutUint32(data[dataCall:], call)
	binary.LittleEndian.PutUint32(data[dataArch:], arch)
	for i, arg := range args {
		binary.LittleEndian.PutUint64(data[dataArgs+8*i:], arg)
	}
	var a uint32
	for i := 0; i < len(p); i++ {
		in := p[i]
		jump := func(yes bool) {
			if yes {
				i += int(in.Jt)
			} else {
				i += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[in.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			i += int(in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d is %#x", i, in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestFilters(t *testing.T) {
	const (
		eperm  = retErrno | uint32(unix.EPERM)
		enosys = retErrno | uint32(unix.ENOSYS)
	)
	keys := secrets{path: 0x1234_5678_9abc, argv: 0x2234_5678_9abc, env: 0x3234_5678_9abc}
	thread := uint64(unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD)
	for _, c := range []struct {
		name   string
		filter program
		call   uint32
		args   []uint64
		want   uint32
	}{
		{"read", noExec(keys), unix.SYS_READ, nil, retAllow},
		{"the launcher's exec", noExec(keys), unix.SYS_EXECVE, []uint64{keys.path, keys.argv, keys.env}, retAllow},
		{"another path", noExec(keys), unix.SYS_EXECVE, []uint64{keys.path + 1<<32, keys.argv, keys.env}, eperm},
		{"other arguments", noExec(keys), unix.SYS_EXECVE, []uint64{keys.path, keys.argv + 1, keys.env}, eperm},
		{"other variables", noExec(keys), unix.SYS_EXECVE, []uint64{keys.path, keys.argv, 0}, eperm},
		{"execveat", noExec(keys), unix.SYS_EXECVEAT, []uint64{keys.path, keys.argv, keys.env}, eperm},
		{"a process", noExec(keys), unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, eperm},
		{"a process that shares memory", noExec(keys), unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, eperm},
		{"a thread", noExec(keys), unix.SYS_CLONE, []uint64{thread}, retAllow},
		{"clone3", noExec(keys), unix.SYS_CLONE3, nil, enosys},
		{"counted", traced(true), unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retTrace},
		{"a thread, counted", traced(true), unix.SYS_CLONE, []uint64{thread}, retAllow},
		{"unseen", traced(true), unix.SYS_CLONE, []uint64{unix.CLONE_UNTRACED | uint64(unix.SIGCHLD)}, eperm},
		{"an unseen thread", traced(true), unix.SYS_CLONE, []uint64{thread | unix.CLONE_UNTRACED}, eperm},
		{"clone3, counted", traced(true), unix.SYS_CLONE3, nil, enosys},
		{"exec", traced(true), unix.SYS_EXECVE, nil, retAllow},
		{"not counted", traced(false), unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retAllow},
		{"unseen, not counted", traced(false), unix.SYS_CLONE, []uint64{unix.CLONE_UNTRACED}, eperm},
		{"clone3, not counted", traced(false), unix.SYS_CLONE3, nil, enosys},
	} {
		if got := answer(t, c.filter, auditArch, c.call, c.args...); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
	for _, call := range forkCalls {
		if got := answer(t, noExec(keys), auditArch, call); got != eperm {
			t.Errorf("call %d without exec: %#x", call, got)
		}
		if got := answer(t, traced(true), auditArch, call); got != retTrace {
			t.Errorf("call %d counted: %#x", call, got)
		}
	}
	if got := answer(t, traced(false), auditArch^1, unix.SYS_READ); got != eperm {
		t.Errorf("another architecture: %#x", got)
	}
	if foreignCalls != 0 {
		if got := answer(t, traced(false), auditArch, foreignCalls|unix.SYS_READ); got != eperm {
			t.Errorf("a foreign call: %#x", got)
		}
	}
}
