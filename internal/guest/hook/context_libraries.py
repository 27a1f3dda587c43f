# What libraries have to be told in a code context, where their own defaults expect a
# terminal, a notebook server or a script. context.py calls these as a program loads them.

import os


def multiprocessing(module):
    """Workers are forked: those of other ways import the main program, and a context has no file of it."""
    default = module._default_context
    if default._actual_context is None and "fork" in module._concrete_contexts:
        default._default_context = module._concrete_contexts["fork"]


def ipython(module):
    """IPython's own functions print where no IPython shell runs."""

    def display(*values, clear=False, transient=None, **named):
        return context.display(*values, **named)

    def update_display(value, *, display_id, **named):
        context.display(value, **named)

    def publish_display_data(data, metadata=None, **_):
        context.display(data, metadata=metadata, raw=True)

    def clear_output(wait=False):
        pass  # what was sent stays

    for f in display, update_display, publish_display_data, clear_output:
        if hasattr(module, f.__name__):
            setattr(module, f.__name__, f)


def plotly(module):
    """Figures are shown in the forms that Plotly has for notebooks, unless the program chooses others."""
    if os.environ.get("PLOTLY_RENDERER"):
        return
    from plotly.io._base_renderers import ExternalRenderer

    class Context(ExternalRenderer):
        def render(self, figure):
            import json

            from plotly.io import to_html, to_json

            context.display({
                "text/plain": "<plotly figure>",
                "text/html": to_html(figure, full_html=False, include_plotlyjs="cdn", validate=False),
                "application/vnd.plotly.v1+json": json.loads(to_json(figure, validate=False, remove_uids=False)),
            }, raw=True)

    module.renderers["atoll"] = Context()
    module.renderers.default = "atoll"
