# IPython.display for contexts whose image has no IPython: the classes and functions by
# which programs show values. context.py makes the modules from it.

import base64
import json
import os


class DisplayObject:
    """A value in one form. data may also come from a url or a file."""

    method = None
    binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if isinstance(data, os.PathLike):
            data, filename = None, os.fspath(data)
        if data is not None and url is None and isinstance(data, str) and data.startswith(("http://", "https://")):
            data, url = None, data
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.reload()

    def reload(self):
        """Reads the data from the file, or the url."""
        if self.filename is not None:
            with open(self.filename, "rb") as f:
                self.data = f.read()
        elif self.url is not None:
            from urllib.request import urlopen

            with urlopen(self.url) as answer:
                self.data = answer.read()
        if isinstance(self.data, bytes) and not self.binary:
            self.data = self.data.decode("utf-8", "replace")

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"

    def _value(self):
        return (self.data, self.metadata) if self.metadata else self.data


class TextDisplayObject(DisplayObject):
    def __init_subclass__(cls):
        if "method" in cls.__dict__:
            setattr(cls, cls.method, cls._value)


class HTML(TextDisplayObject):
    method = "_repr_html_"

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    method = "_repr_markdown_"


class Latex(TextDisplayObject):
    method = "_repr_latex_"


class Math(Latex):
    def _repr_latex_(self):
        return r"$\displaystyle %s$" % self.data.strip("$")


class SVG(TextDisplayObject):
    method = "_repr_svg_"


class Pretty(DisplayObject):
    def __repr__(self):
        return str(self.data)


class JSON(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **more):
        super().__init__(data, url, filename, {"expanded": expanded, "root": root, **(metadata or {}), **more})
        if isinstance(self.data, str):
            self.data = json.loads(self.data)

    def _repr_json_(self):
        return self._value()


class GeoJSON(JSON):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/geo+json": self.data}, {"application/geo+json": self.metadata}

    _repr_json_ = None


class Javascript(TextDisplayObject):
    method = "_repr_javascript_"

    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)
        if lib or css:
            raise ValueError("IPython is not installed, and its stand-in loads no lib or css for Javascript")


class Image(DisplayObject):
    """A picture of PNG, JPEG or GIF data, a file or a url; one of a url is only named, unless embed is set."""

    binary = True
    forms = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):
        if isinstance(data, str) and not data.startswith(("http://", "https://", "data:")):
            data, filename = None, data
        self.width, self.height, self.alt = width, height, alt
        self.embed = embed if embed is not None else not (url or isinstance(data, str))
        super().__init__(data, url, filename, metadata)
        self.form = f"image/{format.lower().replace('jpg', 'jpeg')}" if format else None
        for start, form in self.forms.items():
            if isinstance(self.data, bytes) and self.data.startswith(start):
                self.form = self.form or form

    def reload(self):
        if self.embed or self.filename is not None:
            super().reload()

    def _repr_mimebundle_(self, include=None, exclude=None):
        more = {k: v for k, v in (("width", self.width), ("height", self.height), ("alt", self.alt)) if v is not None}
        if not self.embed:
            from html import escape

            source = self.url or self.data
            return {"text/html": f'<img src="{escape(source)}"' + "".join(f' {k}="{escape(str(v))}"' for k, v in more.items()) + "/>"}
        form = self.form or "image/png"
        return {form: base64.b64encode(self.data).decode()}, {form: {**self.metadata, **more}}


class IFrame:
    def __init__(self, src, width, height, extras=(), **params):
        from urllib.parse import urlencode

        self.src, self.width, self.height, self.extras = src, width, height, extras
        self.params = "?" + urlencode(params) if params else ""

    def _repr_html_(self):
        return (f'<iframe width="{self.width}" height="{self.height}" src="{self.src}{self.params}" '
                f'frameborder="0" allowfullscreen {" ".join(self.extras)}></iframe>')


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, **params):
        super().__init__(f"https://www.youtube.com/embed/{id}", width, height, **params)


class FileLink:
    def __init__(self, path, *_, **__):
        self.path = os.fspath(path)

    def _repr_html_(self):
        from html import escape

        return f"<a href='{escape(self.path)}' target='_blank'>{escape(self.path)}</a>"

    def __repr__(self):
        return os.path.abspath(self.path)


class Code(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def _repr_markdown_(self):
        return f"```{self.language or ''}\n{self.data}\n```"

    def __repr__(self):
        return str(self.data)


class DisplayHandle:
    """Shows values under an id. A context keeps what was shown: an update shows another value."""

    def __init__(self, display_id=None):
        self.display_id = display_id or os.urandom(16).hex()

    def display(self, value, **named):
        context.display(value, **named)

    update = display

    def __repr__(self):
        return f"<DisplayHandle display_id={self.display_id}>"


def update_display(value, *, display_id, **named):
    context.display(value, **named)


def publish_display_data(data, metadata=None, **_):
    context.display(data, metadata=metadata, raw=True)


def clear_output(wait=False):
    """Does nothing: a context keeps what was shown."""


def _shower(of):
    def show(*values, raw=False, metadata=None):
        for value in values:
            context.display(of(value) if raw else value, metadata=metadata)

    return show


display_html, display_markdown, display_latex = _shower(HTML), _shower(Markdown), _shower(Latex)
display_svg, display_javascript, display_json = _shower(SVG), _shower(Javascript), _shower(JSON)
display_pretty, display_png, display_jpeg = _shower(Pretty), _shower(Image), _shower(Image)

NAMES = [name for name, value in globals().items() if name[0] != "_" and callable(value) and getattr(value, "__module__", "") == __name__]


def fill(module):
    """Makes one of the modules."""
    if module.__name__ == "IPython":
        module.__doc__ = "A part of IPython, for code contexts without it: IPython.display. pip install ipython brings the whole."
        module.__version__ = "0"
        module.version_info = (0, 0, 0)
        module.get_ipython = lambda: None
        import IPython.display  # which the name IPython brings
    elif module.__name__ != "IPython.core":
        for name in NAMES:
            setattr(module, name, globals()[name])
        module.display = context.display
        module.__all__ = [*NAMES, "display"]
