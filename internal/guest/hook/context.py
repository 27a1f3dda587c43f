# The persistent Python of a code context: reads pieces of code from descriptor 3,
# runs them one at a time in one namespace, and writes the results to descriptor 4.
# The Go package contexts describes the messages.

import ast
import base64
import builtins
import io
import json
import linecache
import os
import signal
import sys
import threading
import traceback
import types

CONTROL_IN, CONTROL_OUT = 3, 4
GENERATION = "/run/atoll/generation"  # another number after each wake, and in each copy
MOST = 4 << 20  # bytes of one message's data
MOST_LINE = 9 << 20  # of a whole message, in which one byte may take six
MOST_JSON = 256 << 10  # of a list or dict that nobody asked to be JSON
MOST_ROWS = 1000  # of a data frame as JSON
AWAITS = 0x80  # inspect.CO_COROUTINE
FUTURES = 0xFF0000 | 0x1000000  # the compiler's flags of __future__

write, stat, read = os.write, os.stat, os.read
own_file = __file__


def part(name):
    """Loads a file of this folder that few pieces of code need. It sees what is defined here."""
    found = parts.get(name)
    if found is None:
        file = os.path.join(os.path.dirname(own_file), f"context_{name}.py")
        with open(file, encoding="utf-8") as source:
            code = compile(source.read(), own_file, "exec")  # tell() leaves frames of this name out
        found = parts[name] = types.ModuleType(f"context_{name}")
        found.context = types.SimpleNamespace(**globals())
        exec(code, found.__dict__)
    return found


parts = {}
to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # json.dumps makes one each time
PLAIN = frozenset({int, float, complex, bool, str, bytes})  # which have one form, and no methods that tell of others


def text_of(value):
    """to_json, which takes long to begin with all but strings."""
    if type(value) is dict and all([type(k) is str for k in value]):
        return "{" + ", ".join([f"{to_json(k)}: {to_json(v)}" for k, v in value.items()]) + "}"
    return to_json(value)


class Channel:
    """Descriptor 4. A message is never cut short by an interrupt. A blank ends a run's last,
    and what answers a question."""

    def __init__(self):
        self.lock = threading.RLock()
        self.run = 0  # the id of the run that is under way, or was last
        self.held = b""  # goes with what is sent next
        self.busy = False  # the main thread is writing
        self.owed = False  # an interrupt came meanwhile

    def encode(self, kind, **fields):
        line = f'{{"id": {self.run}, "type": "{kind}"'
        for name, value in fields.items():
            line += f', "{name}": {text_of(value)}'
        line += "}"
        data = line.encode("utf-8", "replace") + (b" \n" if kind in ("done", "known", "unknown") else b"\n")
        if len(data) > MOST_LINE:
            return self.encode(kind, data={"text/plain": "…"}, metadata={"omitted": list(fields["data"])})
        return data

    def hold(self, kind, **fields):
        self.held += self.encode(kind, **fields)

    def send(self, kind, **fields):
        data = self.encode(kind, **fields)
        main = threading.current_thread() is threading.main_thread()
        with self.lock:
            if main:
                self.busy = True
            try:
                data, self.held = memoryview(self.held + data), b""
                while data:
                    data = data[write(CONTROL_OUT, data) :]
            finally:
                if main:
                    self.busy = False
        if main and self.owed:
            self.owed = False
            if kernel.running:
                raise KeyboardInterrupt


class Source:
    """Descriptor 3. It calls wait before it waits for the host."""

    def __init__(self, wait):
        self.data = b""
        self.wait = wait

    def more(self):
        self.wait()
        data = read(CONTROL_IN, 64 << 10)
        self.data += data
        return data

    def line(self):
        while b"\n" not in self.data:
            if not self.more():
                return b""
        line, _, self.data = self.data.partition(b"\n")
        return line

    def take(self, length):
        have = [self.data]
        length -= len(self.data)
        while length > 0:
            data = read(CONTROL_IN, min(length, 1 << 20))
            if not data:
                break
            have.append(data)
            length -= len(data)
        data = b"".join(have)
        end = len(data) + min(length, 0)
        self.data = data[end:]
        return data[:end]


class Through(io.BufferedWriter):
    """An output of which nothing waits, so that it is seen as it is written."""

    def write(self, data):
        n = super().write(data)
        self.flush()
        return n


def open_output(fd):
    return io.TextIOWrapper(Through(io.FileIO(fd, "w", closefd=False)), "utf-8", "backslashreplace", write_through=True)


# What objects say of themselves, as in Jupyter.
METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "application/javascript": "_repr_javascript_",
}
CANARY = "_ipython_canary_method_should_not_exist_"  # of objects that claim to have every method


def loaded(module, name):
    """A class of a library, if the program has loaded that."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else ()


def bundle(value):
    """Returns a value in all the forms there are of it, and what is to be said of them."""
    if type(value) in PLAIN:
        text = repr(value)
        if len(text) <= MOST:
            return {"data": {"text/plain": text}, "metadata": {}}
    data, meta = {}, {}
    if isinstance(value, loaded("matplotlib.figure", "Figure")):
        data["image/png"] = picture(value)
    elif not isinstance(value, type) and attempt(getattr, value, CANARY, None) is None:
        whole = getattr(value, "_repr_mimebundle_", None)
        if callable(whole):
            add_all(data, meta, attempt(whole, include=None, exclude=None))
        for mime, name in METHODS.items():
            method = getattr(value, name, None)
            if mime not in data and callable(method):
                add(data, meta, mime, attempt(method))
        table(value, data, meta)
    if not data and isinstance(value, (dict, list)):
        text = attempt(json.dumps, value, allow_nan=False)
        if text is not None and len(text) <= MOST_JSON:
            data["application/json"] = json.loads(text)
    if "text/plain" not in data:
        try:
            data["text/plain"] = repr(value)
        except Exception as e:
            data["text/plain"] = f"<{type(value).__name__} whose repr failed: {type(e).__name__}: {e}>"
    return clean(data, meta)


def attempt(f, *args, **named):
    try:
        return f(*args, **named)
    except Exception:
        return None  # the other forms will do


def add(data, meta, mime, value):
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        value, meta[mime] = value
    if value is not None:
        data[mime] = value


def add_all(data, meta, answer):
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict):
        answer, more = answer
        meta.update(more)
    if isinstance(answer, dict):
        for mime, value in answer.items():
            if value is not None:
                data[str(mime)] = value


def table(value, data, meta):
    """Adds the rows of a data frame."""
    if isinstance(value, loaded("pandas", "DataFrame")):
        rows = len(value)
        text = attempt(value.head(MOST_ROWS).to_json, orient="records", date_format="iso", default_handler=str)
        records = None if text is None else json.loads(text)
    elif isinstance(value, loaded("polars", "DataFrame")):
        rows = value.height
        text = attempt(value.head(MOST_ROWS).write_json)
        records = None if text is None else json.loads(text)
    else:
        return
    if records is not None:
        data["application/json"] = records
        meta["application/json"] = {"rows": rows, "truncated": rows > MOST_ROWS}


def clean(data, meta):
    """Makes it JSON, and leaves away what is too long, and says so."""
    out, size = {}, 0
    for mime, value in sorted(data.items(), key=lambda item: item[0] != "text/plain"):
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = base64.b64encode(value).decode()
        elif mime == "application/json" or mime.endswith("+json"):
            text = attempt(json.dumps, value, allow_nan=False, default=str)
            if text is None:
                continue
            value = json.loads(text)
            size += len(text)
        else:
            value = str(value)
            size += len(value)
        if isinstance(value, str) and len(value) > MOST and mime == "text/plain":
            value, size = value[:MOST] + "…", 0
            meta["truncated"] = [mime]
        elif size > MOST:
            meta.setdefault("omitted", []).append(mime)
            continue
        out[mime] = value
    return {"data": out, "metadata": json.loads(attempt(json.dumps, meta, default=str) or "{}")}


def shows_itself(value):
    """Reports whether a value has displayed itself, as objects with _ipython_display_ do."""
    if type(value) in PLAIN or isinstance(value, type) or attempt(getattr, value, CANARY, None) is not None:
        return False
    method = attempt(getattr, value, "_ipython_display_", None)
    if not callable(method):
        return False
    try:
        method()
        return True
    except Exception:
        return False  # the other forms will do


def display(*values, raw=False, metadata=None, include=None, exclude=None, display_id=None, **_):
    """Shows values, in all the forms they have; raw ones are forms themselves, by their types.
    The rest of the arguments are IPython's: a display_id returns a handle that shows again."""
    if kernel.child:
        return print(*values)  # the channel is the parent's
    for value in values:
        if raw:
            if not isinstance(value, dict):
                raise TypeError("display(…, raw=True) wants a dict of forms, such as {'text/html': '<b>1</b>'}")
            shown = clean(dict(value), dict(metadata or {}))
        elif shows_itself(value):
            continue
        else:
            shown = bundle(value)
            shown["metadata"].update(metadata or {})
        if include or exclude:
            data = shown["data"]
            shown["data"] = {m: data[m] for m in data if (not include or m in include) and m not in (exclude or ())}
        flush()
        channel.send("display", **shown)
    if display_id:
        from IPython.display import DisplayHandle

        return DisplayHandle(None if display_id is True else display_id)


def flush():
    for stream in (sys.stdout, sys.stderr):
        attempt(getattr(stream, "flush", lambda: None))


# Figures are captured by a backend of our own, which is chosen as soon as the
# program has loaded matplotlib, unless it, or its environment, has chosen one.
BACKEND = "atoll_figures"


def choose_backend(module):
    if "MPLBACKEND" not in os.environ:
        module.rcParams["backend"] = "module://" + BACKEND


# LOADED has what to change in a library once the program has loaded it.
LOADED = {
    "matplotlib": choose_backend,
    "asyncio": lambda module: kernel.use_asyncio(module),
    "multiprocessing.context": lambda module: part("libraries").multiprocessing(module),
    "IPython.core.display": lambda module: part("libraries").ipython(module),
    "IPython.core.display_functions": lambda module: part("libraries").ipython(module),
    "plotly.io._renderers": lambda module: part("libraries").plotly(module),
}


class Finder:
    """Finds the libraries of LOADED, our backend of matplotlib, and a small IPython where there is none."""

    def find_spec(self, name, path=None, target=None):
        if name not in LOADED and name != BACKEND and name.partition(".")[0] != "IPython":
            return None
        from importlib import machinery

        if name == BACKEND:
            return machinery.ModuleSpec(name, self)
        spec = machinery.PathFinder.find_spec(name, path)
        if spec is None and name in ("IPython", "IPython.core", "IPython.core.display", "IPython.display"):
            return machinery.ModuleSpec(name, self, is_package=name in ("IPython", "IPython.core"))
        if spec is None or spec.loader is None or name not in LOADED:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            LOADED[name](module)

        spec.loader.exec_module = exec_module
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ != BACKEND:
            return part("ipython").fill(module)
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        module.FigureCanvas = FigureCanvasAgg
        module.show = lambda *args, **named: show_figures()


def picture(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def show_figures(but=None):
    """Shows the figures that are open, and closes them."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return
    for manager in helpers.Gcf.get_all_fig_managers():
        figure = manager.canvas.figure
        helpers.Gcf.destroy(manager)
        if figure is not but and (figure.axes or figure.lines or figure.images or figure.texts):
            display(figure)


class Kernel:
    def __init__(self):
        self.child = False
        self.running = False
        self.flags = 0
        self.count = 0
        self.loop = None
        self.generation = None
        self.packages = None
        if not sys.flags.no_user_site and not sys.flags.isolated:
            import site

            self.packages = site.getusersitepackages() if site.ENABLE_USER_SITE else None
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["__builtins__"] = builtins

    def forked(self):
        self.child = True
        os.closerange(CONTROL_IN, CONTROL_OUT + 1)

    def interrupt(self, *_):
        if not self.running and not self.is_kept():
            return
        if channel.busy:
            channel.owed = True
            return
        raise KeyboardInterrupt

    def is_kept(self):
        """Reports whether a task that does not yield keeps the context from reading the host's message."""
        if self.loop is None:
            return False
        import asyncio
        import select

        loop = asyncio._get_running_loop()  # of this thread
        return loop is not None and asyncio.current_task(loop) is not None and bool(select.select([CONTROL_IN], [], [], 0)[0])

    def run(self, code):
        """Runs a piece of code, and returns whether it came to its end."""
        self.count += 1
        name = f"<run {self.count}>"
        self.look_for_packages()
        if self.loop is not None:
            self.event_loop()
        lines = code.splitlines(True)
        linecache.cache[name] = (len(code), None, lines, name)
        failed = None
        self.running = True
        try:
            try:
                self.execute(code, name)
            except BaseException as e:
                failed = e
            if self.child:
                os._exit(0)  # that was forked, and went on to the end of the piece
            show_figures()
        except BaseException as e:
            failed = failed or e
        self.running = False
        flush()
        if failed is not None:
            self.tell(failed)
        return failed

    def execute(self, code, name):
        first, last = self.parse(code, name)
        value = self.evaluate(first, last)
        if value is None or last is None:
            return
        builtins._ = value
        if shows_itself(value):
            return
        shown = bundle(value)
        figure = value if isinstance(value, loaded("matplotlib.figure", "Figure")) else None
        show_figures(but=figure)
        channel.hold("result", **shown)

    def parse(self, code, name):
        """Compiles a piece into its statements and its last expression, either of which may be None.
        Where it is no Python, lines such as !pip install are made into calls."""
        try:
            return self.expression(code, name) or self.statements(code, name)
        except SyntaxError as e:
            if "!" not in code and "%" not in code:
                raise
            made = part("shell").translate(code, e, lambda code: compile(code, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
            if made is None:
                raise
        return self.statements(made, name)

    def expression(self, code, name):
        """Compiles a piece that is one short expression, as many are, without a tree.
        No warning is told of twice: those of strings are for statements()."""
        if len(code) < 200 and "\n" not in code and "\\" not in code and code[:1] not in " \t\f":
            try:
                return None, self.compile(code, name, "eval")
            except SyntaxError:
                pass
        return None

    def statements(self, code, name):
        tree = compile(code, name, "exec", ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        first = self.compile(tree, name, "exec") if tree.body or last is None else None
        return first, last and self.compile(last, name, "eval")

    def compile(self, source, name, mode):
        code = compile(source, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | self.flags, True)
        self.flags |= code.co_flags & FUTURES
        return code

    def evaluate(self, *codes):
        """Runs compiled code, and returns the value of the last. Where one awaits, an event loop runs
        during all of them, so that statements before an await can start tasks."""
        value = None
        if not any([code and code.co_flags & AWAITS for code in codes]):
            for code in codes:
                if code is not None:
                    value = eval(code, self.names)
            return value

        async def run():
            value = None
            for code in codes:
                if code is not None:
                    value = eval(code, self.names)
                    if code.co_flags & AWAITS:
                        value = await value
            return value

        import asyncio

        loop = self.event_loop()
        task = loop.create_task(run())
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            attempt(loop.run_until_complete, asyncio.wait([task], timeout=1))
            raise

    def event_loop(self):
        """Returns the context's event loop, which also is what asyncio.get_event_loop() returns."""
        import asyncio

        if self.loop is None or self.loop.is_closed() or self.loop.is_running():  # in a thread of the program
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop

    def use_asyncio(self, asyncio):
        """Lets code that awaits nothing start tasks: they run while the context waits for the next piece."""
        real = asyncio.create_task

        def create_task(coro, **named):
            if asyncio._get_running_loop() is None and threading.current_thread() is threading.main_thread() and not self.child:
                return self.event_loop().create_task(coro, **named)
            return real(coro, **named)

        create_task.__doc__ = real.__doc__
        asyncio.create_task = asyncio.tasks.create_task = create_task
        self.event_loop()

    def idle(self):
        """Runs tasks until the host sends something."""
        loop, sent = self.loop, False
        if loop is None or loop.is_closed() or loop.is_running():
            return

        def stop():
            nonlocal sent
            sent = True
            loop.remove_reader(CONTROL_IN)
            loop.stop()

        try:
            loop.add_reader(CONTROL_IN, stop)
        except Exception:
            return  # this loop cannot wait for descriptors: tasks wait for the next piece
        try:
            while not sent and not loop.is_closed() and not loop.is_running():
                try:
                    loop.run_forever()
                except BaseException:  # which asyncio hands on, such as SystemExit
                    traceback.print_exc()
                if self.child:
                    os._exit(0)
        finally:
            if not sent and not loop.is_closed():
                loop.remove_reader(CONTROL_IN)

    def look_for_packages(self):
        """Python looks for the user's packages at its start only; pip may have made their folder since."""
        folder = self.packages
        if folder is None or folder in sys.path:
            return
        try:
            stat(folder)
        except OSError:
            return
        import site

        sys.path_importer_cache.pop(folder, None)
        end = len(sys.path)
        site.addsitedir(folder)
        added = sys.path[end:]
        del sys.path[end:]
        at = [i for i, place in enumerate(sys.path) if place in site.getsitepackages()]
        sys.path[at[0] if at else end:] = added + sys.path[at[0] if at else end:]

    def tell(self, e):
        """Tells of an error, without the part of its way that is ours."""
        trace = e.__traceback__
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<run "):
            trace = trace.tb_next
        step = trace
        while step is not None and step.tb_next is not None:
            if step.tb_next.tb_frame.f_code.co_filename == own_file:
                step.tb_next = None  # where an interrupt came in
            step = step.tb_next
        try:
            lines = traceback.format_exception(type(e), e, trace)
        except BaseException as other:
            lines = [f"{type(e).__name__} (no traceback: {type(other).__name__})\n"]
        try:
            value = str(e)
        except BaseException:
            value = "<no text>"
        lines = [line.rstrip("\n") for line in lines]
        while sum(map(len, lines)) > MOST_JSON and len(lines) > 3:
            del lines[len(lines) // 2]
        channel.send("error", name=type(e).__name__, value=value[:MOST_JSON], traceback=[line[:MOST_JSON] for line in lines])

    def reseed(self):
        """Gives generators a new start, if this is another's copy, or was asleep."""
        generation = None
        try:
            is_now = stat(GENERATION)
            generation = is_now.st_ino, is_now.st_mtime_ns
        except OSError:
            pass  # nothing of the kind has happened
        if generation == self.generation:
            return
        self.generation = generation
        for name in "random", "numpy.random", "torch":
            module = sys.modules.get(name)
            if module is not None:
                attempt(module.seed)
        if "tempfile" in sys.modules:
            sys.modules["tempfile"]._name_sequence = None

    def serve(self):
        source = Source(self.idle)
        channel.send("ready", version=sys.version.partition(" ")[0])
        last, status = None, "ok"  # of the runs that have a key
        while True:
            head = source.line().split()
            if not head:
                return
            run, length, keyed = int(head[0]), int(head[1]), len(head) > 2
            code = source.take(length).decode("utf-8", "replace")
            channel.run = run
            if keyed and run == last:  # it is begun once, however often it comes
                channel.send("known", status=status)
                continue
            if keyed and head[2] == b"?":
                channel.send("unknown")
                continue
            if keyed:
                last = run
                channel.send("began")
            status = "ok"
            self.reseed()
            failed = self.run(code)
            if failed is not None:
                status = "interrupted" if isinstance(failed, KeyboardInterrupt) else "error"
                failed.__traceback__ = None
                del failed
            channel.send("done", status=status)


def main():
    for fd in CONTROL_IN, CONTROL_OUT:
        os.set_inheritable(fd, False)
    sys.stdout, sys.stderr = open_output(1), open_output(2)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.argv = [""]
    sys.path[0] = ""
    sys.modules["__main__"] = kernel.module
    sys.meta_path.insert(0, Finder())
    for name in LOADED.keys() & sys.modules.keys():  # by a sitecustomize
        LOADED[name](sys.modules[name])
    builtins.display = display
    signal.signal(signal.SIGINT, kernel.interrupt)
    os.register_at_fork(after_in_child=kernel.forked)
    kernel.serve()


channel = Channel()
kernel = Kernel()
main()
