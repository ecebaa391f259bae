"""The files of the reference's web app, fetched from its running program into the cache:
they are inside its binary.
"""

import base64
import re
import urllib.error
import urllib.request
from pathlib import Path

INDEX_NAME = "index.html"
_ASSET_PATTERN = re.compile(r"assets/[\w.-]+\.\w+")
_RELATIVE_PATTERN = re.compile(
    r"""["'(]\./([\w.-]+\.(?:js|css|woff2?|wasm|svg|png|aac|mp3|json))["')?]"""
)
_ABSOLUTE_PATTERN = re.compile(
    r"""["'(]/([\w./-]+\.(?:png|svg|ico|woff2?|webmanifest|json|js|css|wasm|aac|mp3))["')?]"""
)
_TEXT_SUFFIXES = (".js", ".css", ".html", ".webmanifest")


def fetch_web_app(url: str, password: str, folder: Path) -> int:
    """Fetch the page and everything that it and its files name, as far as it is there;
    return how many files.
    """
    seen: set[str] = set()
    waiting = [INDEX_NAME]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        data = _fetch(
            f"{url}/{'' if name == INDEX_NAME else name}", password, is_page=name == INDEX_NAME
        )
        if data is None:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name.endswith(_TEXT_SUFFIXES):
            text = data.decode("utf-8", "replace")
            waiting += _ASSET_PATTERN.findall(text) + _ABSOLUTE_PATTERN.findall(text)
            waiting += [f"assets/{each}" for each in _RELATIVE_PATTERN.findall(text)]
    return sum(path.is_file() for path in folder.rglob("*"))


def _fetch(url: str, password: str, *, is_page: bool) -> bytes | None:
    """Return a file; None: it is not there, where the reference answers with the page."""
    credential = base64.b64encode(f"opencode:{password}".encode()).decode()
    headers = {"accept": "text/html" if is_page else "*/*", "authorization": f"Basic {credential}"}
    asked = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as response:
            is_html = "text/html" in response.headers.get("content-type", "")
            return response.read() if is_page == is_html else None
    except urllib.error.HTTPError:
        return None
