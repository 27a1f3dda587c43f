package main

const (
	fileServer = "runsc/fsgofer/lisafs.go"
	serving    = "pkg/lisafs/handlers.go"
	inodes     = "pkg/sentry/fsimpl/gofer/lisafs_inode.go"
	direct     = "pkg/sentry/fsimpl/gofer/directfs_inode.go"
	rlimits    = "pkg/sentry/syscalls/linux/sys_rlimit.go"
	pipes      = "pkg/sentry/kernel/pipe/vfs.go"
)

// fileChanges close descriptors that gVisor's file server leaks, have it tell the size of a
// sandbox's disk, restart open(2) of pipes, and let the guest mark processes.
var fileChanges = []change{
	// link(2) opens the target's folder. Git, npm and bun make thousands of links, and at
	// the server's limit every path of the sandbox fails with EMFILE.
	{fileServer, "\t// to using olddirfd to call linkat(2).\n\toldDirFD, oldName, err := fd.getParentFD()\n\tif err != nil {\n\t\treturn nil, lisafs.Statx{}, err\n\t}\n",
		"\t// to using olddirfd to call linkat(2).\n\toldDirFD, oldName, err := fd.getParentFD()\n\tif err != nil {\n\t\treturn nil, lisafs.Statx{}, err\n\t}\n\tdefer unix.Close(oldDirFD)\n"},
	{fileServer, "\tlinkStat, err := fstatTo(linkFD)\n\tif err != nil {\n", "\tlinkStat, err := fstatTo(linkFD)\n\tif err != nil {\n\t\tunix.Close(linkFD)\n"},

	// A pipe or device that cannot be donated stays open.
	{fileServer, "\t\thostFDToDonate, err = unix.Dup(openHostFD)\n\t\tif err != nil {\n\t\t\treturn nil, 0, err\n", "\t\thostFDToDonate, err = unix.Dup(openHostFD)\n\t\tif err != nil {\n\t\t\tunix.Close(openHostFD)\n\t\t\treturn nil, -1, err\n"},

	// bind(2) leaks the socket's file and closes the socket twice. Listen and Accept keep the
	// reference that they look up.
	{fileServer, "\tsocketControlFD := newControlFDLisa(sockFD, fd, name, linux.ModeSocket)\n", "\tsocketControlFD := newControlFDLisa(sockFileFD, fd, name, linux.ModeSocket)\n"},
	{serving, "\tif err := sock.controlFD.safelyRead(func() error {\n\t\tif sock.controlFD.node.isDeleted() {\n\t\t\treturn unix.EINVAL\n\t\t}\n\t\treturn sock.impl.Listen(req.Backlog)\n",
		"\tdefer sock.DecRef(nil)\n\tif err := sock.controlFD.safelyRead(func() error {\n\t\tif sock.controlFD.node.isDeleted() {\n\t\t\treturn unix.EINVAL\n\t\t}\n\t\treturn sock.impl.Listen(req.Backlog)\n"},
	{serving, "\tvar (\n\t\tnewSock  int\n\t\tpeerAddr string\n\t)\n", "\tdefer sock.DecRef(nil)\n\tvar (\n\t\tnewSock  int\n\t\tpeerAddr string\n\t)\n"},

	// Restoring a deleted file or folder that a program holds open creates it anew, and
	// leaks the server's descriptor.
	{inodes, "\tif !createDentry {\n\t\treturn nil, nil\n\t}\n", "\tif !createDentry {\n\t\ti.fs.client.CloseFD(ctx, childDirInode.ControlFD, false /* flush */)\n\t\treturn nil, nil\n\t}\n"},
	{inodes, "\tif !createDentry {\n\t\treturn nil, h, nil\n\t}\n", "\tif !createDentry {\n\t\ti.fs.client.CloseFD(ctx, ino.ControlFD, false /* flush */)\n\t\treturn nil, h, nil\n\t}\n"},

	{direct, "\tif createDentry {\n\t\tchild, err = i.fs.newDirectfsDentry(childFD)\n", "\tif !createDentry {\n\t\t_ = unix.Close(childFD)\n\t} else {\n\t\tchild, err = i.fs.newDirectfsDentry(childFD)\n"},

	// statfs(2) tells the host's whole disk. Where the host has said how much a mount may take,
	// it tells that: see disksize.go.txt.
	{fileServer, "\tmountNode.IncRef() // Ref is transferred to ControlFD.\n", "\tmountNode.IncRef() // Ref is transferred to ControlFD.\n\tsized.add(c, rootHostFD)\n"},
	{fileServer, "\treturn lisafs.StatFS{\n\t\tType:            uint64(s.Type),\n", "\tstat := lisafs.StatFS{\n\t\tType:            uint64(s.Type),\n"},
	{fileServer, "\t\tNameLength:      uint64(s.Namelen),\n\t}, nil\n", "\t\tNameLength:      uint64(s.Namelen),\n\t}\n\tsized.stat(fd.Conn(), &stat)\n\treturn stat, nil\n"},

	// The guest daemon marks what a command starts by a limit that only it may set: see
	// internal/guest/proctree.
	{rlimits, "\tlimits.ProcessCount:     {},\n", "\tlimits.ProcessCount:     {},\n\tlimits.Locks:            {},\n"},
	{rlimits, "\tprivileged := t.HasRootCapability(linux.CAP_SYS_RESOURCE)\n", "\tprivileged := t.HasRootCapability(linux.CAP_SYS_RESOURCE)\n\tif resource == limits.Locks && !privileged {\n\t\treturn limits.Limit{}, linuxerr.EPERM\n\t}\n"},

	// A stop signal or a checkpoint restarts open(2) of a named pipe, as on Linux. gVisor
	// ends it with EINTR, of which most programs die.
	{pipes, "(*waitWriters)(&vp.pipe), waiter.EventInternal) {\n\t\t\t\tfd.DecRef(ctx)\n\t\t\t\treturn nil, linuxerr.EINTR\n", "(*waitWriters)(&vp.pipe), waiter.EventInternal) {\n\t\t\t\tfd.DecRef(ctx)\n\t\t\t\treturn nil, linuxerr.ERESTARTSYS\n"},
	{pipes, "(*waitReaders)(&vp.pipe), waiter.EventInternal) {\n\t\t\t\tfd.DecRef(ctx)\n\t\t\t\treturn nil, linuxerr.EINTR\n", "(*waitReaders)(&vp.pipe), waiter.EventInternal) {\n\t\t\t\tfd.DecRef(ctx)\n\t\t\t\treturn nil, linuxerr.ERESTARTSYS\n"},
}
