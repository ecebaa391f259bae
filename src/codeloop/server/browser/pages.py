"""The routes of the browser UI: its files, which need no credential, and two for signing in."""

import gzip
import mimetypes
import socket
from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from codeloop.net.hosts import add_brackets, is_loopback
from codeloop.schema.bounds.server import BROWSER_SESSION
from codeloop.schema.installation import InstallationChanged, check_package_file
from codeloop.server.browser.sessions import BrowserSessions
from codeloop.server.responses import make_response

SESSION_PATH = "/web/session"
"""Exchanges a one-time link or the password for a session."""
LINK_PATH = "/web/link"
"""Makes a one-time link, for another device."""
_INDEX_NAME = "index.html"
_WORKER_NAME = "worker.js"
_MEDIA_TYPES = {
    ".webmanifest": "application/manifest+json",
    ".js": "text/javascript",
    ".txt": "text/plain",
}

_POLICY_RULES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src-elem 'self' 'unsafe-inline'",  # xterm.js writes its colours into a style element
    "style-src-attr 'none'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types dompurify codeloop",
)
CONTENT_SECURITY_POLICY = "; ".join(_POLICY_RULES)
PAGE_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",  # for browsers that don't know `frame-ancestors`
}


class PageFile(Struct, frozen=True):
    """A file of the page, plain and compressed by gzip."""

    body: bytes
    gzip_body: bytes
    etag: str
    media_type: str


def list_page_files(folder: Path) -> dict[str, Path]:
    """Return the files below a folder by the path that a browser asks for: `/` for the index,
    else `/web/NAME`.
    """
    files = {
        f"/web/{path.relative_to(folder).as_posix()}": path
        for path in folder.rglob("*")
        if path.is_file()
    }
    index = files.pop(f"/web/{_INDEX_NAME}", None)
    return files if index is None else files | {"/": index}


def make_page_routes(
    paths: dict[str, Path], sessions: BrowserSessions, host: str, port: int
) -> list[BaseRoute]:
    """Return the routes of the page. `host`: what the server listens on."""

    async def start_session(request: Request) -> Response:
        """Start a session for a browser; the guard has checked its link or the password,
        if there is one.
        """
        session = sessions.create_session(request.headers["host"])
        response = make_response({"key": session.key})
        age = BROWSER_SESSION.value // 1000
        response.set_cookie(
            sessions.cookie_name, session.cookie, max_age=age, httponly=True, samesite="strict"
        )
        return response

    async def create_link(_request: Request) -> Response:
        urls = [
            f"http://{add_brackets(name)}:{port}/#link={sessions.create_link()}"
            for name in _list_reachable_hosts(host)
        ]
        return make_response({"urls": urls})

    files: list[BaseRoute] = [
        Route(path, _make_file_endpoint(file)) for path, file in paths.items()
    ]
    return [
        *files,
        Route(SESSION_PATH, start_session, methods=["POST"]),
        Route(LINK_PATH, create_link, methods=["POST"]),
    ]


def _make_file_endpoint(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def send_file(request: Request) -> Response:
        try:
            file = _read_page_file(path)
        except InstallationChanged as error:
            return Response(f"{error}\n", 503, PAGE_HEADERS, "text/plain")
        headers = PAGE_HEADERS | {"etag": file.etag, "vary": "Accept-Encoding, Origin"}
        if path.name == _WORKER_NAME:
            # By default a worker controls only pages below its own folder, and the page is at `/`.
            headers["service-worker-allowed"] = "/"
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(file.body, media_type=file.media_type, headers=headers)
        return Response(
            file.gzip_body,
            media_type=file.media_type,
            headers=headers | {"content-encoding": "gzip"},
        )

    return send_file


@cache
def _read_page_file(path: Path) -> PageFile:
    body = check_package_file(path).read_bytes()
    media_type = (
        _MEDIA_TYPES.get(path.suffix)
        or mimetypes.guess_type(path.name)[0]
        or "application/octet-stream"
    )
    # Without a time in it, the compressed file is the same at every start.
    gzip_body = gzip.compress(body, mtime=0)
    etag = f'"{sha256(body).hexdigest()[:20]}"'
    return PageFile(body=body, gzip_body=gzip_body, etag=etag, media_type=media_type)


def _list_reachable_hosts(host: str) -> list[str]:
    """Return the addresses under which other devices reach a server that listens on `host`;
    none on loopback.
    """
    if is_loopback(host):
        return []
    # Not 0.0.0.0 or `::`, which stand for all interfaces.
    if host.strip("0.:"):
        return [host]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only chooses our address.
            # 192.0.2.1 is reserved for documentation.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [str(probe.getsockname()[0])]
