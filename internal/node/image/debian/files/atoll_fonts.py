"""matplotlib's list of fonts: the image's, made when it was built, and fonts that came since.

matplotlib itself keeps one list in the user's cache, takes seconds to make it, and does not
look for fonts again. The image's font_manager.py calls load() in its place.
"""
import json
import os
import sys

FOLDER = "/var/cache/matplotlib"


def load():
    module = sys.modules["matplotlib.font_manager"]
    if os.environ.get("MPL_IGNORE_SYSTEM_FONTS") or os.environ.get("MPLCONFIGDIR"):
        return module._load_fontmanager()
    try:
        manager = module.json_load(f"{FOLDER}/fontlist-v{module.FontManager.__version__}.json")
        with open(f"{FOLDER}/files.json") as f:
            known = set(json.load(f))
    except Exception:
        return module._load_fontmanager()
    endings = ["." + e for e in module.get_fontext_synonyms("ttf")]
    for place in module.X11FontDirectories:
        for folder, _, names in os.walk(place):
            for name in names:
                file = os.path.join(folder, name)
                if os.path.splitext(name)[1].lower() in endings and os.path.abspath(file) not in known:
                    try:
                        manager.addfont(file)
                    except Exception:
                        pass  # no font, or one that matplotlib cannot scale; it skips these too
    return manager


def build():
    """Makes the list of this image and has matplotlib use it. It runs once, when the image is built."""
    import py_compile

    import matplotlib
    import matplotlib.font_manager as module

    with open(f"{FOLDER}/files.json", "w") as f:
        json.dump(sorted(map(os.path.abspath, module.findSystemFonts())), f)
    with open(module.__file__) as f:
        text = f.read()
    call = "\nfontManager = _load_fontmanager()\n"
    if text.count(call) != 1:
        raise SystemExit("matplotlib's font_manager.py does not load its list of fonts in the way that this recipe changes")
    with open(module.__file__, "w") as f:
        f.write(text.replace(call, "\nfontManager = __import__('atoll_fonts').load()\n"))
    py_compile.compile(module.__file__, doraise=True)
    # Characters that the first font lacks come from the second one.
    with open(matplotlib.matplotlib_fname(), "a") as f:
        f.write("\nfont.family: sans-serif, Noto Sans CJK JP\n")


if __name__ == "__main__":
    build()
