"""The browser UI: what a first visit loads, compressed as the server sends it."""

import gzip
import re

from bench.figures import Bench
from codeloop.web import FILES

_IMPORT = re.compile(rb'(?:from|import)\s*"\./([\w.-]+\.js)"')


def first_load(bench: Bench) -> None:
    """Add up the index, the style, the script and what that imports at once."""
    names, known = ["index.html", "app.css", "icon.svg", "app.webmanifest", "app.js"], set[str]()
    size = 0
    while names:
        name = names.pop()
        if name in known:
            continue
        known.add(name)
        body = (FILES / name).read_bytes()
        size += len(gzip.compress(body, mtime=0))
        names += [found.decode() for found in _IMPORT.findall(body) if name.endswith(".js")]
    for place in bench.places:
        if place.subject.name == "codeloop":
            bench.put(place, "web-first-load", size)
