# Lines of code that notebooks know and Python does not: !command, and some of the
# % commands. They are made into calls, and keep the lines of all other code.

import builtins
import os
import re
import shlex
import subprocess
import sys

LINE = re.compile(r"^(?P<indent>\s*)(?:(?P<names>[\w\s,.\[\]'\"]+?)\s*=\s*(?!=))?(?P<mark>!!?|%)(?P<rest>[^\n]*)")
CELL = re.compile(r"\A\s*%%(?P<name>\w+)[ \t]*(?P<rest>[^\n]*)\n?(?P<body>.*)\Z", re.S)
CALL = "__import__('builtins').__atoll_shell__"
PYTHON = ("time", "timeit", "capture", "python", "python3")  # cells whose body runs as it stands


def translate(code, error, parse):
    """Returns code whose commands are calls, or None where no command is the cause of the error."""
    builtins.__atoll_shell__ = functions
    whole, made = CELL.match(code), set()
    if whole and whole["name"] not in PYTHON:
        return cell(whole["name"], whole["rest"].strip(), whole["body"])
    if whole:
        code = "\n" + whole["body"]
        error = failure(code, parse)
    lines = code.split("\n")
    while error is not None:
        at = (error.lineno or 0) - 1
        call = command(lines, at) if 0 <= at < len(lines) and at not in made else None
        if call is None:
            if made and at not in made:
                raise error from None
            return None
        made.add(at)
        lines[at] = call
        error = failure("\n".join(lines), parse)
    return "\n".join(lines)


def failure(code, parse):
    try:
        parse(code)
    except SyntaxError as e:
        return e
    return None


def command(lines, at):
    """Returns the call that a line of a command becomes; lines that continue it become empty."""
    found = LINE.match(lines[at])
    if not found:
        return None
    rest, next = found["rest"], at + 1
    while rest.endswith("\\") and next < len(lines):
        rest = rest[:-1] + lines[next]
        lines[next] = ""
        next += 1
    names = f"{found['names']} = " if found["names"] else ""
    if found["mark"] == "%":
        name, _, rest = rest.strip().partition(" ")
        return f"{found['indent']}{names}{CALL}.magic({name!r}, {rest.strip()!r}, globals(), locals())"
    call = "lines" if names or found["mark"] == "!!" else "run"
    return f"{found['indent']}{names}{CALL}.{call}({rest.strip()!r}, globals(), locals())"


def cell(name, rest, body):
    if name in ("bash", "sh", "script"):
        shell = rest if name == "script" else name
        return f"{CALL}.script({shell!r}, {body!r}, globals());"
    if name == "writefile":
        return f"{CALL}.write({rest!r}, {body!r});"
    return f"{CALL}.unknown({'%' + name!r});"


class Shell:
    def run(self, line, names, local):
        """Runs a command in Bash with the context's output, and leaves its status in _exit_code."""
        names["_exit_code"] = self.call(expand(line, names, local))

    def call(self, line):
        context.flush()
        status = subprocess.call(self.shell(line), stdin=subprocess.DEVNULL)
        self.after()
        return status if status >= 0 else 128 - status

    def lines(self, line, names, local):
        """Runs a command, and returns the lines of its output."""
        context.flush()
        done = subprocess.run(self.shell(expand(line, names, local)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        names["_exit_code"] = done.returncode
        self.after()
        return done.stdout.decode("utf-8", "replace").splitlines()

    def script(self, program, text, names):
        context.flush()
        status = subprocess.run([*program.split()], input=text.encode()).returncode
        self.after()
        if status:
            raise RuntimeError(f"the script ended with status {status}")

    def write(self, file, text):
        with open(os.path.expanduser(file), "w") as f:
            f.write(text)
        print("Writing", file)

    def magic(self, name, rest, names, local):
        rest = expand(rest, names, local)
        if name == "pip":
            names["_exit_code"] = self.call(f"{shlex.quote(sys.executable)} -m pip {rest}")
            return None
        if name == "cd":
            os.chdir(os.path.expanduser(rest or "~"))
            return print(os.getcwd())
        if name == "pwd":
            return os.getcwd()
        if name in ("env", "set_env"):
            name, _, value = rest.partition("=" if "=" in rest else " ")
            if not value:
                return os.environ.get(name.strip()) if name.strip() else dict(os.environ)
            os.environ[name.strip()] = value.strip()
            return print(f"env: {name.strip()}={value.strip()}")
        if name in ("matplotlib", "load_ext", "reload_ext", "autoreload", "config"):
            return None  # of a notebook: figures are shown as they are
        self.unknown(name)

    def unknown(self, name):
        raise NameError(f"%{name} is not available in code contexts. Write it in Python, or run a program with !command")

    def shell(self, line):
        return ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", line]

    def after(self):
        """Makes packages that a command has installed importable."""
        import importlib

        importlib.invalidate_caches()
        context.kernel.look_for_packages()


def expand(line, names, local):
    """Puts the values of {expression} and $name into a command, where they have one."""

    def value(found):
        text = found[1] or found[2]
        if text.isidentifier() and text not in names and text not in local:
            return found[0]  # such as awk's {print}, which also is a function
        try:
            return str(eval(text, names, local))
        except Exception:
            return found[0]

    return re.sub(r"\{([^{}\s][^{}]*)\}|\$([A-Za-z_]\w*)", value, line)


functions = Shell()
