"""The files of a web app that the user names: served at `/` where no route of ours matches."""

import base64
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

INDEX_NAME = "index.html"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}
"""Suffix -> media type. The module `mimetypes` is not used: its tables differ
from machine to machine.
"""
_HASHED_NAME_PATTERN = r"[-.](?=[\w-]*\d)[\w-]{8,}\.\w+$"
"""A file name with a hash, as bundlers make it (`index-BX3k9a2f.js`);
at least one digit tells it from a long word.
"""
_INLINE_SCRIPT = rb"(?is)<script(?![^>]*\ssrc[\s=])[^>]*>(.*?)</script"
_POLICY_TEMPLATE = (
    "default-src 'self' data: blob:",
    "script-src 'self' 'wasm-unsafe-eval' blob:{inline}",
    "style-src 'self' 'unsafe-inline'",
    "connect-src 'self' data: blob:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)


class WebApp:
    """A folder with an `index.html`, which is also served for every path that a browser
    opens and that has no file.

    Symbolic links are followed only within the folder. Scripts are loaded from this server only,
    and requests go only to it.
    """

    def __init__(self, folder: Path) -> None:
        self._files = StaticFiles(directory=folder)
        self._index = folder / INDEX_NAME

    async def find_response(self, request: Request) -> Response | None:
        """Return a file, or the index for a path that a browser opens; None: there is neither."""
        if request.method not in {"GET", "HEAD"}:
            return None
        # Apps with routes of their own keep the route in the path,
        # so reloading opens a path that is not a file.
        path = request.url.path.strip("/") or INDEX_NAME
        for name in (path, INDEX_NAME) if _is_navigation(request) else (path,):
            try:
                response = await self._files.get_response(name, request.scope)
            except (HTTPException, OSError, ValueError):  # ValueError: a NUL character in the path
                continue
            return self._add_headers(response, name)
        return None

    def _add_headers(self, response: Response, name: str) -> Response:
        media_type = _MEDIA_TYPES.get(Path(name).suffix.lower())
        if media_type is not None and response.status_code != 304:
            response.headers["content-type"] = media_type
        # A year stands for "always"; with "no-cache" a browser keeps a copy,
        # but asks each time whether it is current.
        caching = (
            "private, max-age=31536000, immutable"
            if re.search(_HASHED_NAME_PATTERN, name)
            else "no-cache"
        )
        response.headers["cache-control"] = caching
        # The time and size are part of the key of `_make_policy`'s cache,
        # so that a new build gets a new policy.
        status = self._index.stat()
        response.headers["content-security-policy"] = _make_policy(
            self._index, status.st_mtime_ns, status.st_size
        )
        return response


def _is_navigation(request: Request) -> bool:
    """Return whether a browser opens a page, rather than a script requesting data."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(
        "/api/"
    )


@lru_cache(maxsize=4)
def _make_policy(index: Path, _mtime: int, _size: int) -> str:
    """Return the content security policy: scripts in files of the app, and those inside its index,
    by their hashes.
    """
    digests = (
        base64.b64encode(sha256(script).digest()).decode()
        for script in re.findall(_INLINE_SCRIPT, index.read_bytes())
    )
    return "; ".join(_POLICY_TEMPLATE).format(
        inline="".join(f" 'sha256-{digest}'" for digest in digests)
    )
