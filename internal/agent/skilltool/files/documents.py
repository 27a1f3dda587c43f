"""Reads, converts and organizes documents. The call is JSON on stdin."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from datetime import datetime, timedelta
from xml.etree import ElementTree

OFFICE = {"docx": "paragraphs and tables", "xlsx": "sheets", "pptx": "slides"}
UNPACKED = 20  # times the largest file: what a document may unpack to


class Package:
    """The parts of a DOCX, XLSX or PPTX file."""

    def __init__(self, path, most):
        try:
            self.zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile:
            raise Refused(f"{path} is no such document: it is no zip archive")
        if sum(i.file_size for i in self.zip.infolist()) > most * UNPACKED:
            raise Refused(f"{path} unpacks to more than is read of a document")

    def xml(self, name, needed=True):
        try:
            return ElementTree.fromstring(self.zip.read(name))
        except KeyError:
            if needed:
                raise Refused(f"it is no such document: it has no {name}")
        except (ElementTree.ParseError, RuntimeError, zipfile.BadZipFile, NotImplementedError) as e:
            raise Refused(f"its {name} cannot be read: {e}")

    def targets(self, name):
        folder, _, base = name.rpartition("/")
        found = {}
        rels = self.xml(f"{folder}/_rels/{base}.rels", needed=False)
        for rel in rels if rels is not None else []:
            target = rel.get("Target", "")
            found[rel.get("Id")] = target.lstrip("/") if target.startswith("/") else os.path.normpath(f"{folder}/{target}")
        return found


def row(cells):
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


def table(rows):
    rows = [r for r in rows if any(c.strip() for c in r)]
    if not rows:
        return ""
    width = max(len(r) for r in rows)
    rows = [r + [""] * (width - len(r)) for r in rows]
    return "\n".join([row(rows[0]), "|" + " --- |" * width] + [row(r) for r in rows[1:]])


def paragraph(p):
    text = []
    for n in p.iter():
        if n.tag == W + "t":
            text.append(n.text or "")
        elif n.tag == W + "tab":
            text.append("\t")
        elif n.tag in (W + "br", W + "cr"):
            text.append("\n")
    text = "".join(text)
    style = p.find(f"{W}pPr/{W}pStyle")
    name = style.get(W + "val", "") if style is not None else ""
    heading = re.fullmatch(r"[Hh]eading ?([1-6])", name)
    if heading and text.strip():
        return "#" * int(heading[1]) + " " + text
    if name == "Title" and text.strip():
        return "# " + text
    if (p.find(f"{W}pPr/{W}numPr") is not None or name.startswith("List")) and text.strip():
        return "- " + text
    return text


def docx(path, most):
    body = Package(path, most).xml("word/document.xml").find(W + "body")
    parts = []
    for n in body if body is not None else []:
        if n.tag == W + "p":
            parts.append(paragraph(n))
        elif n.tag == W + "tbl":
            parts.append(table([["\n".join(paragraph(p) for p in c.iter(W + "p")) for c in r.iter(W + "tc")] for r in n.iter(W + "tr")]))
    return [p for p in parts if p.strip()]


def pptx(path, most):
    package = Package(path, most)
    deck, targets = package.xml("ppt/presentation.xml"), package.targets("ppt/presentation.xml")
    parts = []
    for n, slide in enumerate(deck.iter(P + "sldId"), 1):
        lines = [f"# Slide {n}"]
        tree = package.xml(targets.get(slide.get(R + "id"), ""))
        for p in tree.iter(A + "p"):
            text = "".join(t.text or "" if t.tag == A + "t" else "\n" for t in p.iter() if t.tag in (A + "t", A + "br"))
            if text.strip():
                lines.append(text)
        parts.append("\n\n".join(lines))
    return parts


def column(ref):
    n = 0
    for c in re.match(r"[A-Z]*", ref or "")[0]:
        n = n * 26 + ord(c) - 64
    return n - 1


def dates(package):
    """The styles of cells that are dates."""
    styles = package.xml("xl/styles.xml", needed=False)
    if styles is None:
        return set()
    known = set(range(14, 23)) | {45, 46, 47}
    for f in styles.iter(S + "numFmt"):
        if re.search(r"[ymdh]", re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", f.get("formatCode", "")), re.I):
            known.add(int(f.get("numFmtId", 0)))
    cells = styles.find(S + "cellXfs")
    return {i for i, x in enumerate(cells if cells is not None else []) if int(x.get("numFmtId", 0)) in known}


def value(cell, shared, dated):
    kind, v = cell.get("t"), cell.find(S + "v")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(S + "t"))
    if v is None or v.text is None:
        formula = cell.find(S + "f")
        # Programs that write sheets leave the values of formulas to those that show them.
        return "" if formula is None else f"[not computed: ={formula.text}]" if formula.text else "[not computed]"
    if kind == "s":
        return shared[int(v.text)] if int(v.text) < len(shared) else ""
    if kind == "b":
        return "TRUE" if v.text == "1" else "FALSE"
    if kind in (None, "n"):
        number = float(v.text)
        if int(cell.get("s", 0)) in dated and 0 < number < 2958466:
            at = datetime(1899, 12, 30) + timedelta(days=number)
            return at.strftime("%Y-%m-%d" if number == int(number) else "%Y-%m-%d %H:%M:%S")
        return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
    return v.text


def sheets(path, most):
    package = Package(path, most)
    book, targets = package.xml("xl/workbook.xml"), package.targets("xl/workbook.xml")
    strings = package.xml("xl/sharedStrings.xml", needed=False)
    shared = ["".join(t.text or "" for t in s.iter(S + "t")) for s in strings] if strings is not None else []
    dated = dates(package)
    found = []
    for sheet in book.iter(S + "sheet"):
        rows = []
        for r in package.xml(targets.get(sheet.get(R + "id"), "")).iter(S + "row"):
            cells = []
            for c in r.iter(S + "c"):
                at = column(c.get("r")) if c.get("r") else len(cells)
                if at > 16383:
                    raise Refused("it has more columns than a sheet can have")
                cells += [""] * (at + 1 - len(cells))
                cells[at] = value(c, shared, dated)
            gap = int(r.get("r") or len(rows) + 1) - len(rows) - 1
            rows += [[] for _ in range(min(max(gap, 0), 10000))]
            rows.append(cells)
        found.append((sheet.get("name", ""), rows))
    return found


def xlsx(path, most):
    return [f"# Sheet {name}\n\n{table(rows)}" for name, rows in sheets(path, most)]


UNREADABLE = "PDF files cannot be read here: the image has neither pypdf nor pdftotext. Tell the user to add pypdf to packages.pip of the environment, or poppler-utils to packages.apt, or to ask the operator to update the default image with 'atoll image build --if-changed'"


def pdf(path, most):
    try:
        import pypdf
    except ImportError:
        if not shutil.which("pdftotext"):
            raise Refused(UNREADABLE)
        done = subprocess.run(["pdftotext", "-layout", "--", os.path.abspath(path), "-"], cwd="/", capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise Refused(f"{path} cannot be read: {done.stderr.strip()[:300]}")
        return [p.strip("\n") for p in done.stdout.removesuffix("\f").split("\f")]
    try:
        return [page.extract_text() or "" for page in pypdf.PdfReader(path).pages]
    except Exception as e:  # of a library that reads untrusted files
        raise Refused(f"{path} cannot be read: {e}")


READERS = {"docx": docx, "pptx": pptx, "xlsx": xlsx, "pdf": pdf}
PARTS = OFFICE | {"pdf": "pages"}


def kind_of(path):
    return os.path.splitext(path)[1].lstrip(".").lower()


def document(call, path):
    kind = kind_of(path)
    if kind not in READERS:
        raise Refused(f"{path} is none of {', '.join(READERS)}; text files are read with read_file")
    if kind not in call["formats"]:
        raise Refused(f"{kind} is not among the formats of this agent's skill: {', '.join(call['formats'])}")
    if not os.path.isfile(path):
        raise Refused(f"there is no file {path}")
    if os.path.getsize(path) > call["most"]:
        raise Refused(f"{path} is larger than {call['most'] >> 20} MiB, which is the most that is read of a document")
    return kind, READERS[kind](path, call["most"])


def read(call):
    kind, parts = document(call, call["file_path"])
    first = call.get("first") or 1
    last = min(call.get("last") or len(parts), len(parts))
    if parts and not 1 <= first <= len(parts):
        raise Refused(f"it has {len(parts)} {PARTS[kind]}")
    text, shown = "", first - 1
    for i in range(first - 1, last):
        if text and len(text) + len(parts[i]) > call["room"]:
            break
        text += ("\n\n" if text else "") + parts[i]
        shown = i + 1
    head = f"{call['file_path']}, {PARTS[kind]} {first} to {shown} of {len(parts)}:" if parts else f"{call['file_path']} has no text."
    if len(text) > call["room"]:
        text = text[: call["room"]] + f"\n[cut within {shown}; convert the document to a file of the kind txt, and read that with read_file]"
    elif shown < last:
        text += f"\n[the rest begins at first {shown + 1}]"
    return head + "\n" + text


def plain(call, path):
    if not os.path.isfile(path):
        raise Refused(f"there is no file {path}")
    if os.path.getsize(path) > call["most"]:
        raise Refused(f"{path} is larger than {call['most'] >> 20} MiB")
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as f:
        return f.read()


PRINTED = ("docx", "xlsx", "pptx", "csv", "md", "txt", "html", "htm")


def printed(call, kind, path):
    """The pages of a document that becomes a PDF file, as Markdown."""
    if kind in OFFICE:
        _, parts = document(call, path)
        return parts if kind != "docx" else ["\n\n".join(parts)]
    text = plain(call, path)
    if kind == "csv":
        return [table(list(csv.reader(io.StringIO(text))))]
    return [text]


def convert(call):
    source, target = call["file_path"], call["to_path"]
    made, about = (kind_of(source), kind_of(target)), ""
    if made[1] in READERS and made[1] not in call["formats"]:
        raise Refused(f"{made[1]} is not among the formats of this agent's skill: {', '.join(call['formats'])}")
    if os.path.lexists(target):
        if not call.get("overwrite") or not os.path.isfile(target):
            raise Refused(f"there is {target} already; choose another name, or set overwrite")
        if os.path.samefile(source, target):
            raise Refused("a document cannot be converted to itself")
    folder = os.path.dirname(target) or "."
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".atoll-convert-") as beside:
        part = f"{beside}/part"
        if made[1] in ("md", "txt") and made[0] in READERS:
            _, parts = document(call, source)
            with open(part, "x", encoding="utf-8") as f:
                f.write("\n\n".join(parts) + "\n")
        elif made == ("xlsx", "csv"):
            document(call, source)
            all_sheets = sheets(source, call["most"])
            n = call.get("sheet") or 1
            if not 1 <= n <= len(all_sheets):
                raise Refused(f"{source} has {len(all_sheets)} sheets")
            with open(part, "x", encoding="utf-8", newline="") as f:
                csv.writer(f).writerows(all_sheets[n - 1][1])
        elif made[0] in ("md", "txt") and made[1] == "docx":
            to_docx(made[0], plain(call, source), part)
        elif made == ("csv", "xlsx"):
            to_xlsx(plain(call, source), part)
        elif made[0] in ("md", "txt") and made[1] == "pptx":
            to_pptx(plain(call, source), part)
        elif made[1] == "pdf" and made[0] in PRINTED:
            about = to_pdf(made[0], source, printed(call, made[0], source), part)
        else:
            raise Refused(f"{made[0] or 'a file without a kind'} cannot be converted to {made[1] or 'one without a kind'}; possible are pdf, docx, xlsx and pptx to md and txt, xlsx to csv, md and txt to docx and pptx, csv to xlsx, and {', '.join(PRINTED)} to pdf")
        os.replace(part, target)
    return f"Converted {source} to {target}, {os.path.getsize(target)} bytes.{about}"


def organize(call):
    moves = [(m["from_path"], m["to_path"]) for m in call["moves"]]
    sources, targets = [os.path.abspath(a) for a, _ in moves], [os.path.abspath(b) for _, b in moves]
    for (source, target), a, b in zip(moves, sources, targets):
        if not os.path.lexists(source):
            raise Refused(f"there is no {source}; nothing was moved")
        if sources.count(a) > 1 or targets.count(b) > 1:
            raise Refused(f"{source} or {target} is there twice; nothing was moved")
        if os.path.lexists(target) and b not in sources:
            raise Refused(f"there is {target} already; nothing was moved")
        if b in sources:
            raise Refused(f"{target} is itself moved; move it in a call of its own first. Nothing was moved")
        if (b + "/").startswith(a + "/"):
            raise Refused(f"{source} cannot be moved into itself; nothing was moved")
        if any(o != a and a.startswith(o + "/") for o in sources):
            raise Refused(f"{source} moves with its folder; nothing was moved")
    if not call.get("dry_run"):
        move_all(moves)
    listed = "\n".join(f"{a} -> {b}" for a, b in moves)
    if len(listed) > call["room"]:
        listed = listed[: call["room"]] + "\n[and more]"
    return ("Would move" if call.get("dry_run") else "Moved") + f" {len(moves)}:\n" + listed


def move_all(moves):
    done = []
    try:
        for source, target in moves:
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            if os.path.lexists(target):
                raise Refused(f"there is {target} already; nothing was moved")
            shutil.move(source, target)
            done.append((source, target))
    except (Refused, OSError) as e:
        for source, target in reversed(done):
            try:
                shutil.move(target, source)
            except OSError as u:
                raise Refused(f"{e}; and {target} could not be moved back to {source}: {u}")
        raise


def main():
    call, lacks = json.load(sys.stdin), ()
    try:
        return say({"read": read, "convert": convert, "organize": organize}[call["do"]](call))
    except Refused as e:
        why, lacks = str(e), e.lacks
    except OSError as e:
        why = f"{e.filename or 'a file'}: {e.strerror or e}"
    except (ValueError, KeyError, IndexError, RecursionError, MemoryError, zipfile.BadZipFile, EOFError) as e:
        why = f"the document cannot be read: {type(e).__name__}: {e}"
    say(why, failed=True, lacks=lacks)


main()
