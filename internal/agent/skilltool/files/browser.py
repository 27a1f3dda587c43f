"""Drives a headless Chromium over its DevTools protocol. The call is JSON on stdin.

The first call leaves a process behind, which has the browser and serves the calls after it by a socket. Both end
with the sandbox, or when no call has come for a while.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from urllib.parse import urlsplit

START = 40  # seconds that the browser may take to start
ANSWER = 20  # seconds that it may take for what does not load a page
QUIET = 2  # seconds that a loaded page may go on loading
WHOLE = 4 << 20  # characters of a page that are looked at
LINE = 2000  # characters of a title, or of the URL beside it
TALLEST = 8000  # pixels of a picture
LARGE = 1 << 20  # bytes of a picture, above which it is no PNG unless it has to be
CLOSED = "no page is open: open one first"


class Unreached(Refused):
    """The network, or what it leads to, has kept a page from being loaded."""


def host_of(url):
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


class Browser:
    def __init__(self):
        path = binary()
        try:
            self.folder = tempfile.mkdtemp(prefix="atoll-browser-")
            prepare(f"{self.folder}/profile")
        except OSError as e:
            raise Refused(f"the browser needs a folder that can be written: {e}")
        (read, self.down), (self.up, write) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (read, write)]  # out of the way of 3 and 4
        log = os.open(f"{self.folder}/log", os.O_WRONLY | os.O_CREAT, 0o600)
        files = [(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in [(log, 1), (log, 2), (ends[0], 3), (ends[1], 4)]]  # where it reads and writes
        try:
            self.pid = os.posix_spawn(path, [path, f"--user-data-dir={self.folder}/profile", *FLAGS, "--remote-debugging-pipe", "about:blank"],
                                      {**os.environ, "HOME": self.folder, "TMPDIR": self.folder}, file_actions=files)
        except OSError as e:
            os.close(self.down)
            os.close(self.up)
            shutil.rmtree(self.folder, ignore_errors=True)
            raise Refused(f"the browser cannot be started: {e.strerror}. The environment's permissions (process) may forbid it")
        finally:
            for fd in (read, write, log, *ends):
                os.close(fd)
        self.buffer, self.number, self.answers = b"", 0, {}
        self.session = self.target = None
        self.allowed, self.dead = None, False
        self.forget()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.down)
        os.close(self.up)
        shutil.rmtree(self.folder, ignore_errors=True)
        until = time.monotonic() + 5
        while os.path.exists(self.folder) and time.monotonic() < until:  # its other processes end by themselves, and write until then
            time.sleep(0.02)
            shutil.rmtree(self.folder, ignore_errors=True)

    def forget(self):
        """Begins anew what is known of the page."""
        self.there, self.links, self.loader, self.reached = False, [], None, set()
        self.status, self.kind, self.asked, self.failed, self.kept = None, None, {}, {}, []

    # The protocol.

    def send(self, method, params, session=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.down, data):]
        return self.number

    def call(self, method, within=ANSWER, session=True, **params):
        number = self.send(method, params, self.session if session else None)
        self.answers[number] = None
        until = time.monotonic() + within
        try:
            while self.answers[number] is None:
                self.pump(until)
            answer = self.answers[number]
        finally:
            del self.answers[number]
        if "error" in answer:
            raise Refused(f"the browser cannot do it: {answer['error'].get('message')}")
        return answer["result"]

    def pump(self, until):
        """Takes what the browser says, and waits for something until then."""
        left = until - time.monotonic()
        if left <= 0 or not select.select([self.up], [], [], left)[0]:
            raise TimeoutError
        data = os.read(self.up, 1 << 16)
        if not data:
            raise Gone(self.last_words())
        *whole, self.buffer = (self.buffer + data).split(b"\0")
        for message in whole:
            message = json.loads(message)
            if "id" in message:
                if message["id"] in self.answers:
                    self.answers[message["id"]] = message
            else:
                self.event(message["method"], message["params"], message.get("sessionId"))

    def last_words(self):
        try:
            with open(f"{self.folder}/log", errors="replace") as f:
                return f.read()[-300:].strip()
        except OSError:
            return ""

    def event(self, method, p, session):
        if method == "Target.targetCreated" and p["targetInfo"]["type"] == "page" and self.target not in (None, p["targetInfo"]["targetId"]):
            self.send("Target.closeTarget", {"targetId": p["targetInfo"]["targetId"]})  # a window that a page has opened
        if session is None or session != self.session:
            return
        if method == "Fetch.requestPaused":
            url = p["request"]["url"]
            if self.allows(url):
                self.send("Fetch.continueRequest", {"requestId": p["requestId"]}, session)
            else:
                host = host_of(url)
                self.kept = [h for h in self.kept if h != host][-19:] + [host]
                self.send("Fetch.failRequest", {"requestId": p["requestId"], "errorReason": "BlockedByClient"}, session)
        elif method == "Network.requestWillBeSent" and len(self.asked) < 5000:
            self.asked[p["requestId"]] = host_of(p["request"]["url"])
        elif method == "Network.responseReceived" and p["type"] == "Document" and p.get("frameId") == self.target:
            self.status, self.kind = p["response"]["status"], p["response"]["mimeType"]
        elif method == "Network.loadingFailed" and not p.get("canceled"):
            host = self.asked.get(p["requestId"])
            if host and len(self.failed) < 20:
                self.failed[host] = p["errorText"].removeprefix("net::")
        elif method == "Page.lifecycleEvent" and p["frameId"] == self.target:
            if p["name"] == "init":
                self.loader, self.reached = p["loaderId"], set()
            if p["loaderId"] == self.loader:
                self.reached.add(p["name"])
        elif method == "Page.javascriptDialogOpening":
            self.send("Page.handleJavaScriptDialog", {"accept": p["type"] == "beforeunload"}, session)
        elif method == "Inspector.targetCrashed":
            self.dead = True
            raise Refused("the page has crashed, and was closed; it may need more memory than the sandbox has (memory_mb of the environment)")

    def allows(self, url):
        if self.allowed is None or urlsplit(url).scheme not in ("http", "https"):
            return True
        host = host_of(url)
        return any(host == a or host.endswith("." + a) for a in self.allowed)

    # Pages.

    def attach(self):
        """Takes the page that all calls are about."""
        if self.session:
            return
        self.call("Browser.setDownloadBehavior", START, session=False, behavior="deny")
        pages = [t for t in self.call("Target.getTargets", START, session=False)["targetInfos"] if t["type"] == "page"]
        self.target = pages[0]["targetId"] if pages else self.call("Target.createTarget", START, session=False, url="about:blank")["targetId"]
        self.call("Target.setDiscoverTargets", session=False, discover=True)
        self.session = self.call("Target.attachToTarget", session=False, targetId=self.target, flatten=True)["sessionId"]
        self.call("Network.enable", maxTotalBufferSize=1 << 20, maxResourceBufferSize=1 << 20)
        self.call("Fetch.enable", patterns=[{"urlPattern": "*", "resourceType": "Document"}])
        self.call("Page.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def shown(self):
        if not self.there:
            raise Refused(CLOSED)

    def ask(self, function, *arguments):
        """Has a function of page.js look at the page."""
        world = self.call("Page.createIsolatedWorld", frameId=self.target, worldName="atoll")["executionContextId"]
        said = self.call("Runtime.evaluate", contextId=world, returnByValue=True,
                         expression=f"({self.script})[{json.dumps(function)}]({','.join(map(json.dumps, arguments))})")
        if "exceptionDetails" in said:
            raise Refused("the page cannot be read: " + said["exceptionDetails"].get("exception", {}).get("description", "")[:300])
        return said["result"]["value"]

    def open(self, call):
        url = call["url"]
        if not self.allows(url):
            raise Refused(f"{host_of(url)} is not among the allowed_domains of this agent's skill: {', '.join(self.allowed)}")
        self.attach()
        self.forget()
        until = time.monotonic() + call["within"]
        try:
            done = self.call("Page.navigate", call["within"], url=url, **({"referrer": call["from"]} if "from" in call else {}))
        except TimeoutError:
            self.call("Page.stopLoading")
            raise Unreached(f"{host_of(url)} has not answered within {call['within']:g} seconds")
        failed = done.get("errorText", "").removeprefix("net::")
        if failed:
            self.explain(url, failed)
        whole = "loaderId" not in done or self.settle(until)
        if self.kind and not self.kind.startswith(("text/", "image/")) and not any(k in self.kind for k in ("html", "xml", "json", "javascript")):
            raise Refused(f"{url} is {self.kind}, not a page; programs can download it")
        self.there = True
        return self.read(call, "" if whole else f"[still loading after {call['within']:g} seconds]\n")

    def explain(self, url, failed):
        if self.kept:
            raise Refused(f"the page leads on to {self.kept[-1]}, which is not among the allowed_domains of this agent's skill: {', '.join(self.allowed)}")
        if failed == "ERR_ABORTED":
            raise Refused(f"{url} is no page: it is a download, or has no content; programs can download it")
        why = {"ERR_NAME_NOT_RESOLVED": ". Could not resolve host: the name does not exist, or the environment's network does not allow it",
               "ERR_INTERNET_DISCONNECTED": ". Network is unreachable: the environment has none"}.get(failed, "")
        raise Unreached(f"{url} was not loaded: {failed}{why}")

    def settle(self, until):
        """Waits until the page is loaded, and a little for what it loads after that. It reports the first."""
        try:
            while "load" not in self.reached:
                self.pump(until)
        except TimeoutError:
            return False
        quiet = min(until, time.monotonic() + QUIET)
        try:
            while not {"load", "networkAlmostIdle"} <= self.reached:
                self.pump(quiet)
        except TimeoutError:
            pass
        return True

    def text(self):
        self.shown()
        page = self.ask("read", WHOLE)
        if page["url"].startswith("chrome-error:"):  # it has led on to what is not loaded
            self.there = False
            self.explain("the page that it leads on to", next(reversed(self.failed.values()), "it failed"))
        self.links = page["links"]
        return page

    def head(self, page):
        status = f", status {self.status}" if self.status not in (None, 200) else ""
        return f"{page['title'][:LINE] or '(no title)'}\n{page['url'][:LINE]}{status}\n"

    def read(self, call, note=""):
        page = self.text()
        text, first = page["text"], (call.get("start") or 1) - 1
        if first and first >= len(text):
            raise Refused(f"the page has {len(text)} characters")
        end = first + call["room"]
        if end < len(text):
            line = text.rfind("\n", first + call["room"] // 2, end)
            end = line + 1 if line >= 0 else end
        told = self.head(page) + note
        for host in self.kept:
            told += f"[a part of it, or a way on, at {host} is not among the allowed_domains]\n"
        for host, why in list(self.failed.items())[:5]:
            if host not in self.kept:
                told += f"[not loaded: {host} ({why})]\n"
        if not text:
            return told + "[the page has no text]"
        told += f"[characters {first + 1} to {min(end, len(text))} of {len(text)}; numbers in brackets are links]\n\n" + text[first:end].rstrip()
        return told + (f"\n[the rest begins at start {end + 1}]" if end < len(text) else "\n[the page is cut]" if page["cut"] else "")

    def follow(self, call):
        self.shown()
        n = call["link"]
        if not 1 <= n <= len(self.links):
            raise Refused(f"the page, as it was read last, has {len(self.links)} links")
        return self.open({**call, "url": self.links[n - 1]["url"], "from": self.ask("read", 1)["url"]})

    def find(self, call):
        page = self.text()
        low, query = page["text"].lower(), call["text"].lower()
        found, at = [], low.find(query)
        while at >= 0:
            found.append(at)
            at = low.find(query, at + len(query))
        told = self.head(page) + f"found in places: {len(found)}\n"
        for at in found[:20]:
            told += f"[at {at + 1}] " + " ".join(page["text"][max(at - 120, 0): at + len(query) + 120].split()) + "\n"
        return told + ("[and more]" if len(found) > 20 else "")

    def extract(self, call):
        what, first = call["what"], (call.get("first") or 1) - 1
        page = self.text()
        if what == "links":
            parts = [f"[{i}] {link['text']} {link['url']}" for i, link in enumerate(self.links, 1)]
        else:
            if what == "elements" and not call.get("selector"):
                raise Refused("elements are found by a selector")
            got = self.ask("extract", what, call.get("selector") or "html", call.get("attribute"), 1000)
            if "refused" in got:
                raise Refused(got["refused"])
            parts = got["values"] if what == "elements" else [table(rows) for rows in got["tables"]]
        told, shown = "", first
        for part in parts[first:]:
            if len(told) + len(part) > call["room"]:
                break
            told, shown = told + part + "\n" + "\n" * (what == "tables"), shown + 1
        if shown == first and first < len(parts):
            told, shown = parts[first][:call["room"]] + "\n[cut]\n", first + 1
        head = self.head(page) + (f"{what} {first + 1} to {shown} of {len(parts)}:\n" if first < len(parts) else f"it has {len(parts)} {what}\n")
        return head + told + (f"[the rest begins at first {shown + 1}]" if shown < len(parts) else "")

    def screenshot(self, call):
        self.shown()
        page = self.ask("read", 1)
        clip = {}
        if call.get("full_page"):
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": min(size["width"], 1280), "height": min(size["height"], TALLEST), "scale": 1}}
        kind = kind_of(call.get("file_path") or "x.png")
        data = self.call("Page.captureScreenshot", format=kind, **clip)["data"]
        if not call.get("file_path") and len(data) * 3 // 4 > LARGE:
            kind, data = "jpeg", self.call("Page.captureScreenshot", format="jpeg", quality=80, **clip)["data"]
        return {"text": self.head(page), "picture": data, "kind": kind}

    def serve(self, call):
        self.allowed, self.script = call.get("allowed"), call["script"]
        try:
            done = {"open": self.open, "read": self.read, "follow": self.follow, "find": self.find, "extract": self.extract, "screenshot": self.screenshot}[call["do"]](call)
            return done if isinstance(done, dict) else {"text": done}
        except Unreached as e:
            return {"refused": str(e), "unreached": True}
        except Refused as e:
            return {"refused": str(e)}
        except TimeoutError:
            self.dead = True
            return {"refused": "the page does not answer, and was closed"}


class Gone(Exception):
    pass


def kind_of(path):
    kind = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg"}.get(os.path.splitext(path)[1].lower())
    if not kind:
        raise Refused("file_path must end with .png or .jpg")
    return kind


def table(rows):
    width = max((len(r) for r in rows), default=0)
    lines = ["| " + " | ".join(c.replace("|", "\\|") for c in r + [""] * (width - len(r))) + " |" for r in rows]
    return "\n".join(lines[:1] + ["|" + " --- |" * width] + lines[1:]) if rows else "(empty)"


def keep(listener):
    """Has the browser, and serves calls until none has come for a while."""
    browser, until = None, time.monotonic() + START
    try:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return
            ready = select.select([listener] + ([browser.up] if browser else []), [], [], left)[0]
            if browser and browser.up in ready:
                try:
                    browser.pump(time.monotonic() + 1)
                except Refused:  # the page has crashed
                    browser.close()
                    browser = None
            if listener not in ready:
                continue
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(ANSWER)
                try:
                    call = json.loads(peer.makefile("rb").readline())
                except (OSError, ValueError):  # it is no call, or who made it has gone
                    continue
                gone = False
                try:
                    if browser is None and call["do"] != "open":
                        raise Refused(CLOSED)
                    browser = browser or Browser()
                    answer = browser.serve(call)
                    if browser.dead:
                        browser.close()
                        browser = None
                except Refused as e:
                    answer = {"refused": str(e)}
                except Gone as e:
                    answer, gone = {"refused": f"the browser has ended: {e}"}, True
                try:
                    peer.sendall(json.dumps(answer).encode() + b"\n")
                except OSError:  # who made it has gone
                    pass
                if gone:
                    return
            until = time.monotonic() + call["idle"]
    except Gone:
        pass
    finally:
        listener.close()
        if browser:
            browser.close()


def leave_behind(address):
    """Starts the process that has the browser."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(8)
    try:
        child = os.fork()
    except OSError as e:
        raise Refused(f"the browser cannot be started: {e.strerror}. The environment's permissions (process) may forbid it")
    if child:
        os.waitpid(child, 0)
        listener.close()
        return
    try:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            os.chdir("/")
            keep(listener)
    finally:
        os._exit(0)


def connect(address):
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(address)
        return peer
    except OSError:
        peer.close()


def pass_on(call):
    address = "\0atoll-browser" + call.get("name", "")  # no file, so it is gone with who listens
    peer = connect(address)
    if peer is None:
        if call["do"] != "open":
            raise Refused(CLOSED)
        binary()
        leave_behind(address)
        peer = connect(address)
        if peer is None:
            raise Refused("the browser could not be started")
    with peer:
        peer.settimeout(call["within"] + START + 2 * ANSWER)
        stream = peer.makefile("rwb")
        stream.write(json.dumps(call).encode() + b"\n")
        stream.flush()
        line = stream.readline()
    if not line:
        raise Refused("the browser has ended; it may need more memory than the sandbox has (memory_mb of the environment)")
    return json.loads(line)


def save(call, answer):
    """Writes a picture where the model wants it, and where it is collected."""
    data = base64.b64decode(answer.pop("picture"))
    path = call.get("file_path")
    if not path:
        n, ending = 1, {"png": "png", "jpeg": "jpg"}[answer["kind"]]
        while os.path.lexists(path := f"screenshots/{n}.{ending}"):
            n += 1
    for to in (path, call["beside"]):
        os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
        with open(to, "wb") as f:
            f.write(data)
    answer["text"] += f"Saved as {path}, {len(data)} bytes."


def main():
    call = json.load(sys.stdin)
    try:
        if call["do"] == "screenshot" and call.get("file_path"):
            kind_of(call["file_path"])
        answer = pass_on(call)
        if "picture" in answer:
            save(call, answer)
    except Refused as e:
        answer = {"refused": str(e), "lacks": e.lacks}
    except OSError as e:
        answer = {"refused": f"{e.filename or 'the browser'}: {e.strerror or e}"}
    say(answer.get("refused") or answer["text"], failed="refused" in answer, lacks=answer.get("lacks", ()))
    if answer.get("unreached"):  # so that the run has failed, and is told what the network refused
        print(answer["refused"], file=sys.stderr)
        sys.exit(1)


main()
