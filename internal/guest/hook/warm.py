# Makes Python wait, at the end of its start-up, for the program it is to run. A
# .pth file runs it with inode, made and preload among its globals, which vanish
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
        gc.freeze()
        if not had:
            del sys.modules["gc"]
        # The program's own namespace must not be among it: what it leaves there
        # is finalized at exit.
        main = type(sys)("__main__")
        main.__dict__.update(sys.modules["__main__"].__dict__)
        sys.modules["__main__"] = main

    def touch():
        # Restored memory is mapped in page by page as it is used, which costs
        # many times what mapping it in one go does, now that nobody waits.
        if ctypes := sys.modules.get("ctypes"):
            libc = ctypes.CDLL(None)
            libc.mlockall(1)
            libc.munlockall()

    def take(n):
        data = b""
        while len(data) < n:
            more = posix.read(3, n - len(data))
            if not more:
                posix._exit(1)
            data += more
        return data

    def wait():
        # Python asks every kind of importer whether main.py is one of its
        # archives, remembers that it is none, and then runs it. It may as well
        # remember that before.
        sys.path_importer_cache[os.getcwd() + "/" + sys.orig_argv[1]] = None
        freeze()
        while True:
            posix.write(4, b"R")
            message = take(int.from_bytes(take(4), "little"))
            if message[0] != 4:
                break
            touch()
        posix.close(3)
        posix.close(4)
        if message[0] & 1:
            os.environ.clear()
            posix.environ.clear()
            for entry in message[1:].split(b"\0")[:-1]:
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
                for finder in sys.meta_path:
                    finder.find_spec(name, None)  # they look again, and remember
                wait()
            return None

    if site.ENABLE_USER_SITE:
        sys.meta_path.insert(0, Last)
    else:
        wait()


main()
