# Makes Python wait, at the end of its start-up, for the program it is to run. A
# .pth file runs it with inode, made, fork and preload among its globals, which vanish
# with it; everything after it is Python's own doing.


def main():
    import os
    import posix
    import sys

    site = sys.modules["site"]
    try:
        if posix.fstat(3).st_ino != inode:
            return  # another Python, not the one that is meant
    except OSError:
        return
    # Python 3.13 and later decode .pth files with a codec that a bare start has
    # no use for, unless there is a .pth file besides ours.
    codec = "encodings.utf_8_sig"
    if next(reversed(sys.modules)) == codec and not any(
        f.endswith(".pth") and f != "zzz-atoll.pth"
        for folder in site.getsitepackages()
        if os.path.isdir(folder)
        for f in os.listdir(folder)
    ):
        del sys.modules[codec], sys.modules["encodings"].utf_8_sig
    if made:
        # Python would not have seen a folder that is about to go again.
        sys.path.remove(made)
        sys.path_importer_cache.pop(made, None)
    before = set(sys.modules)
    try:
        for name in preload.split():
            __import__(name)
    except BaseException as e:
        posix.write(4, f"E{type(e).__name__}: {e}".encode("utf-8", "replace")[:4000])
        posix._exit(1)

    # Taking the preloads down at exit, object by object, takes longer than most
    # programs do, and shows nowhere. So they are kept from it: by a cycle that
    # nothing reaches and no collection sees (they are frozen below), and by not
    # being found any more when Python takes its modules down.
    if preload:
        import atexit

        ahead = [name for name in sys.modules if name not in before]
        cycle = [sys.modules[name] for name in ahead]
        cycle.append(cycle)
        del cycle
        atexit.register(lambda: [sys.modules.pop(name, None) for name in ahead])

    def freeze():
        # What start-up made stays: collecting it at exit, twice, for nothing,
        # costs a third of a short program.
        had = "gc" in sys.modules
        import gc

        gc.collect()
        # So does taking Python's own functions and classes down one by one. They
        # are kept from it like preloads, and their modules are with them: those
        # are found, and emptied of what a program may have put there.
        kept = part()
        for name, module in sys.modules.items():
            if name.partition(".")[0] in sys.stdlib_module_names:
                kept.append(module)
                kept += [v for v in vars(module).values() if isinstance(v, (type, type(freeze), type(len)))]
        kept.append(kept)
        del kept
        gc.freeze()
        if not had:
            del sys.modules["gc"]
        # The program's own namespace must not be among it: what it leaves there
        # is finalized at exit.
        main = type(sys)("__main__")
        main.__dict__.update(sys.modules["__main__"].__dict__)
        sys.modules["__main__"] = main

    def part():
        # The kernel takes long to end a process, and nothing of it shows. So process 1
        # is told before, as it is by Node: by a title that says what has been used, and
        # by outputs that end. It returns what must be kept for that.
        import _thread
        import _weakref

        set_name = getattr(_thread, "set_name", None)
        if preload or set_name is None:
            return []
        try:
            import resource
        except ImportError:
            return []
        del sys.modules["resource"]
        usage, own, children = resource.getrusage, resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
        fstat, get_blocking, closerange = posix.fstat, posix.get_blocking, posix.closerange
        waitpid, nohang, no_child, anything = posix.waitpid, posix.WNOHANG, ChildProcessError, BaseException
        number = int
        note_me()
        never = _thread.allocate_lock()
        never.acquire()

        # Its status is 0 only if the program's module returns, by no error and no exit.
        # So its code is looked out for, and then nothing but its return.
        returned, path = [], os.getcwd() + "/" + sys.orig_argv[1]
        monitoring, tool = sys.monitoring, 4
        starts, returns = monitoring.events.PY_START, monitoring.events.PY_RETURN

        def returns_from(code, offset, value):
            returned.append(True)

        def started(code, offset):
            if code.co_name != "<module>" or code.co_filename != path:
                return monitoring.DISABLE
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, starts, None)
            monitoring.register_callback(tool, returns, returns_from)
            monitoring.set_local_events(tool, code, returns)

        monitoring.use_tool_id(tool, "atoll")
        monitoring.register_callback(tool, starts, started)
        monitoring.set_events(tool, starts)

        # The rest is gone by the very end, so it is noted down before: as soon as
        # Python, about to end, forgets its finders, and by C functions alone, which no
        # trace function sees. The outputs have to be those that Python can flush.
        noted, out, err, same = [], _weakref.ref(sys.stdout), _weakref.ref(sys.stderr), object.__eq__
        at_exit = zip(
            iter(sys.is_finalizing, None),
            iter(_thread._count, None),
            map(repr, iter(out, 0)),
            map(repr, iter(err, 0)),
            map(same, iter(out, 0), map(vars(sys).get, ("stdout",))),
            map(same, iter(out, 0), map(vars(sys).get, ("__stdout__",))),
            map(same, iter(err, 0), map(vars(sys).get, ("stderr",))),
            map(same, iter(err, 0), map(vars(sys).get, ("__stderr__",))),
            map(tuple, (vars(sys),)),
            map(tuple, (sys.modules,)),
        )
        usual = (True, 0, repr(sys.stdout), repr(sys.stderr), True, True, True, True)
        # Other libraries may have something to write of their own, or to put in order.
        known = sys.stdlib_module_names - {"_ctypes", "_curses", "_interpqueues", "_tkinter", "readline"}
        known |= {"__main__", "sitecustomize"}

        def tell(_):  # when there are neither globals nor builtins any more
            try:
                ((*now, last, names),) = noted
                if not returned or (*now,) != usual or "last_type" in last:
                    return
                if not {name.partition(".")[0] for name in names} <= known:
                    return
                if [fstat(1).st_ino, fstat(2).st_ino] != me:
                    return
                if not get_blocking(1) or not get_blocking(2) or usage(children).ru_maxrss:
                    return
                try:
                    waitpid(-1, nohang)
                    return
                except no_child:
                    pass
                used = usage(own)
                word = "\x01\x02"
                for n in used.ru_maxrss, number((used.ru_utime + used.ru_stime) * 100_000):
                    for at in 0, 6, 12, 18, 24:
                        word += "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmno"[n >> at & 63]
                set_name(word)
                closerange(1, 3)
                never.acquire(True, 0.02)
            except anything:
                pass

        # Last of all Python forgets what to call in a forked child, newest first.
        end = me.clear
        posix.register_at_fork(after_in_child=end)
        note = type(tell.__get__(0))(next, map(noted.append, at_exit))
        finder = next(finder for finder in sys.path_importer_cache.values() if finder)
        return [_weakref.ref(finder, note), _weakref.ref(end, tell)]

    me = []  # the outputs; nothing in a child that a program forks

    def note_me():
        me[:] = [posix.fstat(fd).st_ino for fd in (1, 2)]

    def forks():
        # What serve needs of the kernel, or why it cannot be: the memory that programs
        # would share, and threads that they would lack.
        known = set(sys.modules)
        try:
            import ctypes
            import resource

            libc = ctypes.CDLL(None)
            calls = libc.setns, libc.prctl, libc.mlockall, libc.munlockall, posix.pidfd_open, resource
        except (ImportError, AttributeError, OSError) as e:
            fail(e)
        for name in set(sys.modules) - known:
            del sys.modules[name]
        if len(posix.listdir("/proc/self/task")) > 1:
            fail("threads run")
        with open("/proc/self/maps") as maps:
            if any(line.split()[1][1::2] == "ws" for line in maps):
                fail("memory is shared")
        return calls

    def fail(why):
        posix.write(4, f"Ecannot fork: {why}".encode())
        posix._exit(1)

    def serve(setns, prctl, lock, unlock, pidfd_open, resource):
        # Forks an interpreter for each order, and returns in that: user 1000, in the
        # namespaces of an init, with descriptors that are copies of process 1's.
        def enter(fd, namespaces):
            if setns(fd, namespaces):
                posix._exit(1)

        home = os.getcwd()
        while True:
            order = posix.read(3, 20)
            if len(order) < 20:
                posix._exit(0)
            numbers = [int.from_bytes(order[at : at + 4], "little") for at in range(0, 20, 4)]
            init = pidfd_open(numbers[0])
            control = posix.open(f"/proc/1/fd/{numbers[1]}", posix.O_RDONLY)
            note, out, err = [posix.open(f"/proc/1/fd/{n}", posix.O_WRONLY) for n in numbers[2:]]
            enter(init, 0x20000000)  # processes
            if not preload:
                # A fork then copies memory (runsc/patch), which costs less than the faults
                # by which both come to pages of their own.
                lock(2 | 4)  # what is to come, once it is used: nothing
            pid = posix.fork()
            if not pid:
                break
            if not preload:
                unlock()
            for fd in init, control, note, out, err:
                posix.close(fd)
            posix.write(4, pid.to_bytes(8, "little"))
            sys.modules["resource"] = resource  # or it would be looked for
            _, status, used = posix.wait4(pid, 0)
            del sys.modules["resource"]
            times = [int(1e6 * t) for t in (used.ru_utime, used.ru_stime)]
            posix.write(4, b"".join(n.to_bytes(8, "little") for n in (status, used.ru_maxrss, *times)))
        enter(init, 0x4C020000)  # mounts, System V objects, names, sockets
        for fd, to in (posix.open("/dev/null", posix.O_RDONLY), 0), (out, 1), (err, 2), (control, 3), (note, 4):
            posix.dup2(fd, to)
        posix.closerange(5, 1 << 20)
        posix.setsid()
        try:
            posix.setgroups([1000])
        except PermissionError:
            pass  # in a user namespace that forbids it there are no groups to drop
        posix.setresgid(1000, 1000, 1000)
        posix.setresuid(1000, 1000, 1000)
        prctl(4, 1, 0, 0, 0)  # as one that was started is: its own in /proc
        posix.chdir(home)
        note_me()

    def touch():
        # Restored memory is mapped in page by page as it is used, which costs
        # many times what mapping it in one go does, now that nobody waits.
        if ctypes := sys.modules.get("ctypes"):
            libc = ctypes.CDLL(None)
            libc.mlockall(1)
            libc.munlockall()

    def take():
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
            more = posix.read(3, 256)
            if not more:
                posix._exit(1)
            data += more
        return data[4:]

    def wait():
        # Python asks every kind of importer whether main.py is one of its
        # archives, remembers that it is none, and then runs it. It may as well
        # remember that before.
        sys.path_importer_cache[os.getcwd() + "/" + sys.orig_argv[1]] = None
        calls = fork and forks()
        freeze()
        while True:
            posix.write(4, b"R")
            message = take()
            if message[0] == 4:
                touch()
            elif message[0] == 64:
                serve(*calls)
            else:
                break
        posix.closerange(3, 5)
        if message[0] & 8:
            posix.chdir(os.getcwd())
        # Without arguments (16) and variables (1) there is only padding to split.
        entries = message[0] & 17 and message[1:].split(b"\0")[:-1]
        if message[0] & 16:
            n = int(entries[0])
            more = [os.fsdecode(arg) for arg in entries[1 : n + 1]]
            del entries[: n + 1]
            sys.argv += more
            sys.orig_argv += more
        if message[0] & 32:
            fd = posix.open("/run/atoll/stdin", posix.O_RDONLY)
            posix.dup2(fd, 0)
            posix.close(fd)
        if message[0] & 1:
            os.environ.clear()
            posix.environ.clear()
            for entry in entries:
                key, _, value = entry.partition(b"=")
                posix.environ[key] = value
                os.environb[key] = value
        if message[0] & 2:
            for name in "random", "numpy.random":
                if name in sys.modules:
                    sys.modules[name].seed()

    class Last:
        # The last thing that Python's start-up looks for, in vain as a rule, is
        # a module usercustomize. To wait there rather than here puts the rest
        # of the start-up, a third of what is left, before the program comes.
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "usercustomize":
                sys.meta_path.remove(Last)
                found = [finder.find_spec(name, None) for finder in sys.meta_path]
                wait()
                if not any(found):  # or they would all look again
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return None

    if site.ENABLE_USER_SITE:
        sys.meta_path.insert(0, Last)
    else:
        wait()


main()
