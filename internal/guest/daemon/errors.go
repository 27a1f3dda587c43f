package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

func refuse(reason proto.Reason, format string, args ...any) *proto.Error {
	return &proto.Error{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// reasons are those of the kernel's errors that a caller can do something about.
var reasons = map[unix.Errno]proto.Reason{
	unix.ENOENT: proto.Missing, unix.ESRCH: proto.Missing,
	unix.EEXIST: proto.Exists, unix.ENOTEMPTY: proto.Exists,
	unix.EACCES: proto.Denied, unix.EPERM: proto.Denied, unix.EROFS: proto.Denied,
	unix.ENOSPC: proto.Full, unix.EDQUOT: proto.Full, unix.EFBIG: proto.Full,
	unix.EMFILE: proto.Files, unix.ENFILE: proto.Files, unix.EAGAIN: proto.Limited, unix.ENOMEM: proto.Limited,
	unix.EISDIR: proto.Mistaken, unix.ENOTDIR: proto.Mistaken, unix.ELOOP: proto.Mistaken, unix.EBUSY: proto.Mistaken,
	unix.ECONNREFUSED: proto.Missing,
	unix.EINVAL:       proto.Invalid, unix.ENAMETOOLONG: proto.Invalid, unix.E2BIG: proto.Invalid, unix.ENOEXEC: proto.Invalid,
}

// refusal is an error as the host is told of it.
func refusal(err error) *proto.Error {
	if e, ok := errors.AsType[*proto.Error](err); ok {
		return e
	}
	e := &proto.Error{Reason: proto.Failed, Text: err.Error()}
	if n, ok := errors.AsType[syscall.Errno](err); ok && reasons[n] != "" {
		e.Reason = reasons[n]
	}
	const most = 2 << 10
	e.Text = e.Text[:min(len(e.Text), most)]
	return e
}

// step names what failed, and with what.
func step(what, path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s %q: %w", what, path, err)
}
