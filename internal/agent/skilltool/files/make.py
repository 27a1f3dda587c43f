"""Makes documents: DOCX, XLSX, PPTX and PDF."""

import csv
import io
import re
import subprocess
import tempfile
import zipfile
from urllib.request import pathname2url
from xml.sax.saxutils import escape

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
PRINT = 50  # seconds that a PDF file may take


def pack(path, parts):
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as z:
        for name, text in parts.items():
            z.writestr(name, '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n' + text)


def rels(*targets):
    base = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    return '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' + "".join(
        f'<Relationship Id="rId{i}" Type="{base}{kind}" Target="{target}"/>' for i, (kind, target) in enumerate(targets, 1)) + "</Relationships>"


def types(*parts):
    return ('<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>' + "".join(
                f'<Override PartName="{name}" ContentType="application/vnd.openxmlformats-officedocument.{kind}+xml"/>' for kind, name in parts) + "</Types>")


def clean(text):
    return escape("".join(c for c in text if c >= " " or c == "\t"))


SPAN = re.compile(r"(?<!\\)(?:`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*(?!\*)|(?<![\w*])\*(?!\s)(?P<italic>[^*]+?)\*(?!\w)"
                  r"|!\[(?P<alt>[^\]]*)\]\((?P<image>[^)\s]+)\)|\[(?P<words>[^\]]+)\]\((?P<link>(?:https?|mailto):[^)\s]+)\))")


def spans(text, marks=frozenset(), link=""):
    """The parts of a text of Markdown: words, how they are marked, and where they lead."""
    out, at = [], 0
    def plain(words):
        if words:
            out.append((re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", words), marks, link))
    for found in SPAN.finditer(text):
        plain(text[at:found.start()])
        at = found.end()
        if found["code"] is not None:
            out.append((found["code"], marks | {"code"}, link))
        elif found["image"] is not None:
            out.append((found["alt"], marks | {"image"}, found["image"]))
        elif found["link"] is not None:
            out += spans(found["words"], marks, found["link"])
        else:
            mark = "bold" if found["bold"] is not None else "italic"
            out += spans(found[mark], marks | {mark}, link)
    plain(text[at:])
    return out


def cells(line):
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


ITEM = r"(\s*)([-*+]|\d+[.)]) +(.*)"


def blocks(text):
    """The blocks of Markdown: what agents and the readers here write of it."""
    lines, i = text.splitlines(), 0
    starts = r"```|#{1,6} |\s*([-*+]|\d+[.)]) |\s*\||>|\s*(-{3,}|\*{3,})\s*$"
    def block(pattern):
        nonlocal i
        first = i
        while i < len(lines) and re.match(pattern, lines[i]):
            i += 1
        return lines[first:i]
    def joined(words):
        return "".join(re.sub(r"( {2,}|\\)$", "", w).strip() + ("\n" if re.search(r"( {2,}|\\)$", w) else " ") for w in words).strip()
    while i < len(lines):
        line = lines[i]
        heading = re.match(r"(#{1,6}) +(.*)", line)
        if not line.strip():
            i += 1
        elif line.startswith("```"):
            end = next((k for k in range(i + 1, len(lines)) if lines[k].startswith("```")), len(lines))
            yield "code", "\n".join(lines[i + 1:end])
            i = end + 1
        elif heading:
            yield "heading", (len(heading[1]), re.sub(r"\s+#+\s*$", "", heading[2]))
            i += 1
        elif re.fullmatch(r"\s*(-{3,}|\*{3,})\s*", line):
            yield "rule", None
            i += 1
        elif line.lstrip().startswith("|"):
            rows = [cells(r) for r in block(r"\s*\|")]
            top = len(rows) > 1 and all(re.fullmatch(r":?-+:?", c) for c in rows[1])
            yield "table", (rows[:1] + rows[2:] if top else rows, top)
        elif re.match(ITEM, line):
            items, depths = [], []
            while i < len(lines):
                item = re.match(ITEM, lines[i])
                if item:
                    indent = len(item[1].expandtabs(4))
                    while depths and indent < depths[-1]:
                        depths.pop()
                    if not depths or indent > depths[-1]:
                        depths.append(indent)
                    items.append([len(depths) - 1, item[2][0].isdigit(), item[3]])
                elif lines[i].strip() and lines[i][0] in " \t" and not re.match(starts, lines[i].strip()):
                    items[-1][2] += " " + lines[i].strip()
                else:
                    after = next((k for k in range(i, len(lines)) if lines[k].strip()), len(lines))
                    if after == i or after == len(lines) or not re.match(ITEM, lines[after]):
                        break
                    i = after  # blank lines between items
                    continue
                i += 1
            yield "list", [tuple(item) for item in items]
        elif line.startswith(">"):
            yield "quote", joined([q[1:] for q in block(">")])
        else:
            words = [line]
            i += 1
            while i < len(lines) and lines[i].strip() and not re.match(starts, lines[i]):
                words.append(lines[i])
                i += 1
            yield "words", joined(words)


class Docx:
    """The body of a DOCX file, as it is written."""

    def __init__(self):
        self.body, self.links, self.lists = [], [], []

    def run(self, words, marks=(), link=""):
        style = "".join((
            '<w:rStyle w:val="Hyperlink"/>' if link else "", '<w:rFonts w:ascii="Courier New" w:hAnsi="Courier New" w:cs="Courier New"/>' if "code" in marks else "",
            "<w:b/>" if "bold" in marks else "", "<w:i/>" if "italic" in marks else "", '<w:shd w:val="clear" w:color="auto" w:fill="F0F0F0"/>' if "code" in marks else ""))
        text = "<w:br/>".join(f'<w:t xml:space="preserve">{clean(line)}</w:t>' for line in words.split("\n"))
        out = f"<w:r>{f'<w:rPr>{style}</w:rPr>' if style else ''}{text}</w:r>"
        if not link:
            return out
        if link not in self.links:
            self.links.append(link)
        return f'<w:hyperlink r:id="link{self.links.index(link)}">{out}</w:hyperlink>'

    def text(self, markdown, marks=frozenset()):
        return "".join(self.run(words or link, found | marks, "" if "image" in found else link) for words, found, link in spans(markdown))

    def paragraph(self, runs, style="", more=""):
        style = f'<w:pStyle w:val="{style}"/>' if style else ""
        return f"<w:p>{f'<w:pPr>{style}{more}</w:pPr>' if style or more else ''}{runs}</w:p>"

    def add(self, kind, of):
        if kind == "heading":
            self.body.append(self.paragraph(self.text(of[1]), f"Heading{of[0]}"))
        elif kind == "code":
            self.body.append(self.paragraph(self.run(of), "Code"))
        elif kind == "rule":
            self.body.append(self.paragraph("", more='<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="888888"/></w:pBdr>'))
        elif kind == "quote":
            self.body.append(self.paragraph(self.text(of), "Quote"))
        elif kind == "table":
            self.table(*of)
        elif kind == "list":
            self.list(of)
        else:
            self.body.append(self.paragraph(self.text(of)))

    def table(self, rows, top):
        width = max(len(r) for r in rows)
        out = [f'<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid>{"<w:gridCol/>" * width}</w:tblGrid>']
        for n, r in enumerate(rows):
            head = top and n == 0
            line = "".join("<w:tc>" + self.paragraph(self.text(c, frozenset({"bold"} if head else ()))) + "</w:tc>" for c in r + [""] * (width - len(r)))
            out.append(f"<w:tr>{'<w:trPr><w:tblHeader/></w:trPr>' if head else ''}{line}</w:tr>")
        self.body.append("".join(out) + "</w:tbl>" + self.paragraph(""))  # Word joins tables without one

    def list(self, items):
        numbers = {}  # of the lists that the items before are in, by depth: each counts from 1
        for depth, ordered, words in items:
            depth = min(depth, 8)
            for deeper in [d for d in numbers if d > depth]:
                del numbers[deeper]
            if numbers.get(depth, (None,))[0] != ordered:
                self.lists.append(ordered)
                numbers[depth] = ordered, len(self.lists)
            self.body.append(self.paragraph(self.text(words), "ListParagraph", f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{numbers[depth][1]}"/></w:numPr>'))

    def numbering(self):
        def levels(kind):
            return "".join(f'<w:lvl w:ilvl="{i}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{"&#8226;" if kind == "bullet" else f"%{i + 1}."}"/>'
                           f'<w:pPr><w:ind w:left="{360 * (i + 1)}" w:hanging="360"/></w:pPr></w:lvl>' for i in range(9))
        kinds = "".join(f'<w:abstractNum w:abstractNumId="{i}">{levels(kind)}</w:abstractNum>' for i, kind in enumerate(("bullet", "decimal")))
        restart = "".join(f'<w:lvlOverride w:ilvl="{i}"><w:startOverride w:val="1"/></w:lvlOverride>' for i in range(9))
        return kinds + "".join(f'<w:num w:numId="{n}"><w:abstractNumId w:val="{int(ordered)}"/>{restart if ordered else ""}</w:num>' for n, ordered in enumerate(self.lists, 1))


def docx_styles():
    def style(name, title, ppr="", rpr="", kind="paragraph", more=""):
        return f'<w:style w:type="{kind}" w:styleId="{name}"><w:name w:val="{title}"/>{f"<w:pPr>{ppr}</w:pPr>" if ppr else ""}{f"<w:rPr>{rpr}</w:rPr>" if rpr else ""}{more}</w:style>'
    lines = "".join(f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="888888"/>' for side in ("top", "left", "bottom", "right", "insideH", "insideV"))
    return ('<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:pPr><w:spacing w:after="120"/></w:pPr></w:style>'
            + "".join(style(f"Heading{i}", f"heading {i}", f'<w:outlineLvl w:val="{i - 1}"/>', f'<w:b/><w:sz w:val="{36 - 2 * i}"/>') for i in range(1, 7))
            + style("ListParagraph", "List Paragraph", '<w:contextualSpacing/>') + style("Quote", "Quote", '<w:ind w:left="720"/>', "<w:i/>")
            + style("Code", "Code", '<w:shd w:val="clear" w:color="auto" w:fill="F0F0F0"/>', '<w:rFonts w:ascii="Courier New" w:hAnsi="Courier New" w:cs="Courier New"/><w:sz w:val="18"/>')
            + style("Hyperlink", "Hyperlink", rpr='<w:color w:val="0563C1"/><w:u w:val="single"/>', kind="character")
            + style("TableGrid", "Table Grid", kind="table", more=f"<w:tblPr><w:tblBorders>{lines}</w:tblBorders></w:tblPr>"))


def to_docx(kind, text, path):
    made = Docx()
    if kind == "md":
        for block in blocks(text):
            made.add(*block)
    else:
        made.body = [made.paragraph(made.run(line)) for line in text.splitlines()]
    ns = f'xmlns:w="{W[1:-1]}" xmlns:r="{R[1:-1]}"'
    links = "".join(f'<Relationship Id="link{i}" Type="{R[1:-1]}/hyperlink" Target="{escape(link, {chr(34): "&quot;"})}" TargetMode="External"/>' for i, link in enumerate(made.links))
    pack(path, {
        "[Content_Types].xml": types(("wordprocessingml.document.main", "/word/document.xml"), ("wordprocessingml.styles", "/word/styles.xml"),
                                     ("wordprocessingml.numbering", "/word/numbering.xml")),
        "_rels/.rels": rels(("officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": rels(("styles", "styles.xml"), ("numbering", "numbering.xml")).replace("</Relationships>", links + "</Relationships>"),
        "word/styles.xml": f"<w:styles {ns}>{docx_styles()}</w:styles>", "word/numbering.xml": f"<w:numbering {ns}>{made.numbering()}</w:numbering>",
        "word/document.xml": f"<w:document {ns}><w:body>{''.join(made.body)}</w:body></w:document>",
    })


def letters(n):
    text = ""
    while n >= 0:
        text, n = chr(65 + n % 26) + text, n // 26 - 1
    return text


def to_xlsx(text, path):
    rows = []
    for i, cells in enumerate(csv.reader(io.StringIO(text)), 1):
        out = []
        for k, cell in enumerate(cells):
            ref = f"{letters(k)}{i}"
            if re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.\d+)?", cell):
                out.append(f'<c r="{ref}"><v>{cell}</v></c>')
            else:
                out.append(f'<c r="{ref}" t="inlineStr"><is><t xml:space="preserve">{clean(cell)}</t></is></c>')
        rows.append(f'<row r="{i}">{"".join(out)}</row>')
    ns = f'xmlns="{S[1:-1]}"'
    pack(path, {
        "[Content_Types].xml": types(("spreadsheetml.sheet.main", "/xl/workbook.xml"), ("spreadsheetml.worksheet", "/xl/worksheets/sheet1.xml")),
        "_rels/.rels": rels(("officeDocument", "xl/workbook.xml")), "xl/_rels/workbook.xml.rels": rels(("worksheet", "worksheets/sheet1.xml")),
        "xl/workbook.xml": f'<workbook {ns} xmlns:r="{R[1:-1]}"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f"<worksheet {ns}><sheetData>{''.join(rows)}</sheetData></worksheet>",
    })


def outline(text):
    """The slides of a text: a heading begins one, and the lines after it are its points, by their indents."""
    slides = []
    for line in text.splitlines():
        heading = re.match(r"#{1,2} +(.*)", line)
        if heading:
            slides.append((heading[1], []))
        elif line.strip() and not re.fullmatch(r"\s*-{3,}\s*", line):
            if not slides:
                slides.append(("", []))
            indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
            slides[-1][1].append((min(indent // 2, 4), re.sub(r"^\s*([-*+]|\d+\.|#+) +", "", line).strip()))
    if not slides:
        raise Refused("it has no text to make slides of")
    return slides


def shape(n, name, place, box, points):
    at = '<a:xfrm><a:off x="{}" y="{}"/><a:ext cx="{}" cy="{}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'.format(*box) if box else ""
    text = "".join(f'<a:p><a:pPr lvl="{level}"/><a:r><a:rPr lang="en-US"/><a:t>{clean(words)}</a:t></a:r></a:p>' for level, words in points) or "<a:p/>"
    return (f'<p:sp><p:nvSpPr><p:cNvPr id="{n}" name="{name}"/><p:cNvSpPr><a:spLocks noGrp="1"/></p:cNvSpPr><p:nvPr><p:ph {place}/></p:nvPr></p:nvSpPr>'
            f"<p:spPr>{at}</p:spPr><p:txBody><a:bodyPr><a:normAutofit/></a:bodyPr><a:lstStyle/>{text}</p:txBody></p:sp>")


def slide(kind, title, points, more="", boxes=(None, None), attributes="", name=""):
    """The XML of a slide, or of what all slides are made by."""
    return (f'<p:{kind} xmlns:a="{A[1:-1]}" xmlns:r="{R[1:-1]}" xmlns:p="{P[1:-1]}"{attributes}><p:cSld{name}><p:spTree>'
            '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
            + shape(2, "Title", 'type="title"', boxes[0], title) + shape(3, "Content", 'type="body" idx="1"' if kind != "sld" else 'idx="1"', boxes[1], points)
            + f"</p:spTree></p:cSld>{more}</p:{kind}>")


def theme():
    colors = dict(dk1="000000", lt1="FFFFFF", dk2="44546A", lt2="E7E6E6", accent1="4472C4", accent2="ED7D31", accent3="A5A5A5", accent4="FFC000",
                  accent5="5B9BD5", accent6="70AD47", hlink="0563C1", folHlink="954F72")
    fill = '<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>'
    font = '<a:latin typeface="Arial"/><a:ea typeface=""/><a:cs typeface=""/>'
    line = "".join(f'<a:ln w="{w}">{fill}</a:ln>' for w in (6350, 12700, 19050))
    return (f'<a:theme xmlns:a="{A[1:-1]}" name="Plain"><a:themeElements><a:clrScheme name="Plain">'
            + "".join(f'<a:{name}><a:srgbClr val="{value}"/></a:{name}>' for name, value in colors.items())
            + f'</a:clrScheme><a:fontScheme name="Plain"><a:majorFont>{font}</a:majorFont><a:minorFont>{font}</a:minorFont></a:fontScheme>'
            f'<a:fmtScheme name="Plain"><a:fillStyleLst>{fill * 3}</a:fillStyleLst><a:lnStyleLst>{line}</a:lnStyleLst><a:effectStyleLst>'
            + "<a:effectStyle><a:effectLst/></a:effectStyle>" * 3 + f"</a:effectStyleLst><a:bgFillStyleLst>{fill * 3}</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>")


def to_pptx(text, path):
    slides = outline(text)
    colors = " ".join(f'{a}="{b}"' for a, b in dict(bg1="lt1", tx1="dk1", bg2="lt2", tx2="dk2").items())
    colors += "".join(f' {c}="{c}"' for c in [f"accent{i}" for i in range(1, 7)] + ["hlink", "folHlink"])
    points = "".join(f'<a:lvl{i}pPr marL="{342900 * i}" indent="-285750"><a:spcBef><a:spcPts val="600"/></a:spcBef><a:buFont typeface="Arial"/><a:buChar char="&#8226;"/>'
                     f'<a:defRPr sz="{2600 - 200 * i}"><a:solidFill><a:schemeClr val="tx1"/></a:solidFill></a:defRPr></a:lvl{i}pPr>' for i in range(1, 6))
    styles = ('<p:txStyles><p:titleStyle><a:lvl1pPr><a:defRPr sz="3600" b="1"><a:solidFill><a:schemeClr val="tx1"/></a:solidFill></a:defRPr></a:lvl1pPr></p:titleStyle>'
              f"<p:bodyStyle>{points}</p:bodyStyle><p:otherStyle/></p:txStyles>")
    own = "<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr>"
    boxes = ((838200, 365125, 10515600, 1100000), (838200, 1600000, 10515600, 4600000))
    layouts = '<p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="rId1"/></p:sldLayoutIdLst>'
    ids = "".join(f'<p:sldId id="{255 + i}" r:id="rId{i + 1}"/>' for i in range(1, len(slides) + 1))
    parts = {
        "[Content_Types].xml": types(("presentationml.presentation.main", "/ppt/presentation.xml"), ("presentationml.slideMaster", "/ppt/slideMasters/slideMaster1.xml"),
                                     ("presentationml.slideLayout", "/ppt/slideLayouts/slideLayout1.xml"), ("theme", "/ppt/theme/theme1.xml"),
                                     *[("presentationml.slide", f"/ppt/slides/slide{i}.xml") for i in range(1, len(slides) + 1)]),
        "_rels/.rels": rels(("officeDocument", "ppt/presentation.xml")),
        "ppt/_rels/presentation.xml.rels": rels(("slideMaster", "slideMasters/slideMaster1.xml"), *[("slide", f"slides/slide{i}.xml") for i in range(1, len(slides) + 1)]),
        "ppt/presentation.xml": f'<p:presentation xmlns:a="{A[1:-1]}" xmlns:r="{R[1:-1]}" xmlns:p="{P[1:-1]}"><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rId1"/></p:sldMasterIdLst>'
                                f'<p:sldIdLst>{ids}</p:sldIdLst><p:sldSz cx="12192000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>',
        "ppt/slideMasters/_rels/slideMaster1.xml.rels": rels(("slideLayout", "../slideLayouts/slideLayout1.xml"), ("theme", "../theme/theme1.xml")),
        "ppt/slideMasters/slideMaster1.xml": slide("sldMaster", [], [], f"<p:clrMap {colors}/>{layouts}{styles}", boxes),
        "ppt/slideLayouts/_rels/slideLayout1.xml.rels": rels(("slideMaster", "../slideMasters/slideMaster1.xml")),
        "ppt/slideLayouts/slideLayout1.xml": slide("sldLayout", [], [], own, attributes=' type="obj" preserve="1"', name=' name="Title and Content"'),
        "ppt/theme/theme1.xml": theme(),
    }
    for i, (title, points) in enumerate(slides, 1):
        parts[f"ppt/slides/slide{i}.xml"] = slide("sld", [(0, title)] if title else [], points, own)
        parts[f"ppt/slides/_rels/slide{i}.xml.rels"] = rels(("slideLayout", "../slideLayouts/slideLayout1.xml"))
    pack(path, parts)


def inline(text):
    """The HTML of a text of Markdown."""
    out = []
    for words, marks, link in spans(text):
        words = escape(words, {'"': "&quot;"}).replace("\n", "<br>")
        if "image" in marks:
            words = f'<img alt="{words}" src="{escape(link, {chr(34): "&quot;"})}">'
        elif link:
            words = f'<a href="{escape(link, {chr(34): "&quot;"})}">{words}</a>'
        for mark, tag in (("code", "code"), ("italic", "i"), ("bold", "b")):
            words = f"<{tag}>{words}</{tag}>" if mark in marks else words
        out.append(words)
    return "".join(out)


def html_list(items):
    """A list whose items are (depth, ordered, text), with lists in it."""
    out, i = [], 0
    while i < len(items):
        depth, ordered, _ = items[i]
        kind = "ol" if ordered else "ul"
        out.append(f"<{kind}>")
        while i < len(items) and items[i][0] >= depth and (items[i][0] > depth or items[i][1] == ordered):
            words, i = items[i][2], i + 1
            first = i
            while i < len(items) and items[i][0] > depth:
                i += 1
            out.append("<li>" + inline(words) + html_list(items[first:i]))
        out.append(f"</{kind}>")
    return "".join(out)


def html_of(text):
    out = []
    for kind, of in blocks(text):
        if kind == "heading":
            out.append(f"<h{of[0]}>{inline(of[1])}</h{of[0]}>")
        elif kind == "code":
            out.append(f"<pre>{escape(of)}</pre>")
        elif kind == "rule":
            out.append("<hr>")
        elif kind == "table":
            rows, top = of
            out.append("<table>" + "".join("<tr>" + "".join(f"<{'th' if top and n == 0 else 'td'}>{inline(c)}" for c in r) for n, r in enumerate(rows)) + "</table>")
        elif kind == "list":
            out.append(html_list(of))
        elif kind == "quote":
            out.append(f"<blockquote>{inline(of)}</blockquote>")
        else:
            out.append("<p>" + inline(of) + "</p>")
    return "\n".join(out)


SHEET = """body { font: 11pt/1.45 sans-serif } table { border-collapse: collapse } td, th { border: 1px solid #888; padding: 2pt 6pt; text-align: left; vertical-align: top }
pre { white-space: pre-wrap; background: #f4f4f4; padding: 6pt } img { max-width: 100% } section + section { break-before: page } @page { margin: 2cm }"""


def print_page(url, path, *lacking):
    """Prints a page with the browser. lacking is what binary is to say if no browser is installed."""
    program = binary(*lacking)
    with tempfile.TemporaryDirectory(prefix="atoll-print-") as folder:
        prepare(f"{folder}/profile")
        flags = [f"--user-data-dir={folder}/profile", *FLAGS, "--no-pdf-header-footer", f"--print-to-pdf={os.path.abspath(path)}", url]
        run_maker([program, *flags], folder)
    if not os.path.isfile(path):
        raise Refused("the browser could not print it")


def run_maker(command, folder):
    try:
        done = subprocess.run(command, env={**os.environ, "HOME": folder, "TMPDIR": folder}, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PRINT)
    except subprocess.TimeoutExpired:
        raise Refused(f"it took longer than {PRINT} seconds")
    if done.returncode != 0:
        raise Refused(f"it could not be made: {done.stderr.strip()[-300:]}")


def office(source, path):
    """Has LibreOffice make a PDF file, which looks as the document does."""
    with tempfile.TemporaryDirectory(prefix="atoll-office-") as folder:
        run_maker(["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", "pdf", "--outdir", folder, os.path.abspath(source)], folder)
        made = f"{folder}/{os.path.splitext(os.path.basename(source))[0]}.pdf"
        if not os.path.isfile(made):
            raise Refused("LibreOffice could not read it")
        shutil.move(made, path)


OFFICELESS = ("the environment has neither LibreOffice nor a browser. Tell the user to add {} to packages.apt of the environment, or to "
              + EXTRAS.format("browser,office"))
PLAIN = " It has the text and tables alone. For a PDF that looks like the document, tell the user to add {} to packages.apt of the environment, or to " + EXTRAS.format("browser,office") + "."


def to_pdf(kind, source, parts, path):
    """Converts parts, Markdown texts that each start a page, or an HTML file, which has no parts. Returns a remark for the answer."""
    writer = {"docx": "libreoffice-writer-nogui", "xlsx": "libreoffice-calc-nogui", "pptx": "libreoffice-impress-nogui"}.get(kind)
    if writer and shutil.which("soffice"):
        office(source, path)
        return ""
    if kind in ("html", "htm"):
        print_page("file://" + pathname2url(os.path.abspath(source)), path)
        return ""
    base = "file://" + pathname2url(os.path.dirname(os.path.abspath(source))) + "/"
    body = "".join(f"<section>{html_of(p) if kind != 'txt' else '<pre>' + escape(p) + '</pre>'}</section>" for p in parts)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as f:
        f.write(f'<!DOCTYPE html><meta charset="utf-8"><base href="{escape(base)}"><title>{escape(os.path.basename(source))}</title><style>{SHEET}</style>{body}')
        f.flush()
        print_page("file://" + f.name, path, *((OFFICELESS.format(writer), ("browser", "office")) if writer else ()))
    return PLAIN.format(writer) if writer else ""
