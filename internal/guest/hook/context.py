# The persistent Python of a code context: runs the pieces of code that come on
# descriptor 3, one after the other, in one namespace, and tells on descriptor 4
# what came of them. docs/contexts.md describes the messages.

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

write, stat = os.write, os.stat
own_file = __file__
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
}


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
    elif not isinstance(value, type):
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


def display(*values, raw=False, metadata=None):
    """Shows values, in all the forms they have; raw ones are forms themselves, by their types."""
    for value in values:
        if raw:
            if not isinstance(value, dict):
                raise TypeError("display(…, raw=True) wants a dict of forms, such as {'text/html': '<b>1</b>'}")
            shown = clean(dict(value), dict(metadata or {}))
        else:
            shown = bundle(value)
            shown["metadata"].update(metadata or {})
        flush()
        channel.send("display", **shown)


def flush():
    for stream in (sys.stdout, sys.stderr):
        attempt(getattr(stream, "flush", lambda: None))


# Figures are captured by a backend of our own, which is chosen as soon as the
# program has loaded matplotlib, unless it, or its environment, has chosen one.
BACKEND = "atoll_figures"


class Figures:
    """Finds matplotlib, and its backend."""

    def find_spec(self, name, path=None, target=None):
        if name != BACKEND and name != "matplotlib":
            return None
        from importlib import machinery

        if name == BACKEND:
            return machinery.ModuleSpec(name, self)
        spec = machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            if "MPLBACKEND" not in os.environ:
                module.rcParams["backend"] = "module://" + BACKEND

        spec.loader.exec_module = exec_module
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
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
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["__builtins__"] = builtins

    def forked(self):
        self.child = True
        os.closerange(CONTROL_IN, CONTROL_OUT + 1)

    def interrupt(self, *_):
        if not self.running:
            return
        if channel.busy:
            channel.owed = True
            return
        raise KeyboardInterrupt

    def run(self, code):
        """Runs a piece of code, and returns whether it came to its end."""
        self.count += 1
        name = f"<run {self.count}>"
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
        last = self.expression(code, name)
        if last is None:
            last = self.statements(code, name)
        if last is None:
            return
        value = self.evaluate(last)
        if value is None:
            return
        builtins._ = value
        shown = bundle(value)
        figure = value if isinstance(value, loaded("matplotlib.figure", "Figure")) else None
        show_figures(but=figure)
        channel.hold("result", **shown)

    def expression(self, code, name):
        """Compiles a piece that is one short expression, as many are, without a tree.
        No warning is told of twice: those of strings are for statements()."""
        if len(code) < 200 and "\n" not in code and "\\" not in code and code[:1] not in " \t\f":
            try:
                return self.compile(code, name, "eval")
            except SyntaxError:
                pass
        return None

    def statements(self, code, name):
        """Runs all but a last expression, which it compiles."""
        tree = compile(code, name, "exec", ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        if tree.body or last is None:
            self.evaluate(self.compile(tree, name, "exec"))
        return last and self.compile(last, name, "eval")

    def compile(self, source, name, mode):
        code = compile(source, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | self.flags, True)
        self.flags |= code.co_flags & FUTURES
        return code

    def evaluate(self, code):
        if not code.co_flags & AWAITS:
            return eval(code, self.names)
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(eval(code, self.names))
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            attempt(self.loop.run_until_complete, asyncio.wait([task], timeout=1))
            raise

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
        source = io.BufferedReader(io.FileIO(CONTROL_IN, closefd=False), 64 << 10)
        channel.send("ready", version=sys.version.partition(" ")[0])
        last, status = None, "ok"  # of the runs that have a key
        while True:
            head = source.readline().split()
            if not head:
                return
            run, length, keyed = int(head[0]), int(head[1]), len(head) > 2
            code = source.read(length).decode("utf-8", "replace")
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
    sys.meta_path.insert(0, Figures())
    builtins.display = display
    signal.signal(signal.SIGINT, kernel.interrupt)
    os.register_at_fork(after_in_child=kernel.forked)
    kernel.serve()


channel = Channel()
kernel = Kernel()
main()
