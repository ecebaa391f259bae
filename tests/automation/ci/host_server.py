"""A local server that speaks a host's REST API as strictly as the host does,
with a real git repository behind it.
"""

import base64
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

Row = dict[str, Any]


class Refused(Exception):
    """The server refuses a request, with a status and a body."""

    def __init__(self, status: int, body: Row, **headers: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Fault:
    """What goes wrong with the next `times` requests that fit: a status,
    or a connection that is cut.

    `cut`: "before" the request is carried out, or "after".
    """

    method: str
    path: str
    status: int = 0
    cut: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    times: int = 1
    then: Callable[[], object] | None = None

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and method == self.method and re.search(self.path, path) is not None


Handle = Callable[[re.Match[str], dict[str, str], Row], Any]


@dataclass
class HostServer:
    """Serves a bare repository and the rows that the subclass keeps.
    `violations`: requests that no client may send.
    """

    bare: Path
    token: str = "tok-3f9c1e77ab"
    page_size: int = 100
    port: int = 0
    faults: list[Fault] = field(default_factory=list[Fault])
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    violations: list[str] = field(default_factory=list[str])
    git_user: str = ""
    _ids: int = 100
    _seconds: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_id(self) -> int:
        self._ids += 1
        return self._ids

    def now(self) -> str:
        """Return a time, a second after the one that the last call returned."""
        self._seconds += 1
        return f"2026-01-02T{self._seconds // 3600:02}:{self._seconds // 60 % 60:02}:{self._seconds % 60:02}Z"

    def routes(self) -> list[tuple[str, str, Handle]]:
        """Return method, pattern of the path below the API, and what answers."""
        raise NotImplementedError

    def check_headers(self, headers: dict[str, str]) -> None:
        """Raise Refused when a header is missing or wrong."""
        raise NotImplementedError

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", f"--git-dir={self.bare}", *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        return done.stdout.strip()

    def sha(self, branch: str) -> str:
        try:
            return self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        except subprocess.CalledProcessError:
            return ""

    def break_rule(self, what: str) -> None:
        self.violations.append(what)

    def take_fields(self, body: Row, required: dict[str, type], optional: dict[str, type]) -> None:
        """Check the fields of a body. Raises Refused (422)."""
        known = {**required, **optional}
        wrong = [name for name in body if name not in known]
        wrong += [name for name in required if name not in body]
        wrong += [
            name
            for name, value in body.items()
            if name in known and not isinstance(value, known[name])
        ]
        if wrong:
            self.break_rule(f"fields {wrong}")
            raise Refused(
                422,
                {
                    "message": "Validation Failed",
                    "errors": [{"field": wrong[0], "code": "invalid"}],
                },
            )

    def answer(
        self, method: str, target: str, headers: dict[str, str], raw: bytes
    ) -> tuple[int, Row, dict[str, str]]:
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            self.check_headers(headers)
            body: Row = {}
            if method in {"GET", "DELETE"} and raw:
                self.break_rule(f"{method} {target} with a body")
            if method not in {"GET", "DELETE"}:
                if headers.get("content-type") != "application/json":
                    self.break_rule(f"content-type {headers.get('content-type')}")
                    raise Refused(415, {"message": "Unsupported Media Type"})
                body = json.loads(raw)
            found = [
                (m, h)
                for verb, pattern, h in self.routes()
                if verb == method and (m := re.fullmatch(pattern, parts.path))
            ]
            if not found:
                self.break_rule(f"{method} {target}")
                raise Refused(404, {"message": "Not Found"})
            match, handle = found[0]
            with self._lock:
                result = handle(match, query, body)
        except Refused as refused:
            return refused.status, refused.body, refused.headers
        if method == "GET" and isinstance(result, list):
            return self._page(parts.path, query, result)
        return (201 if method == "POST" else 200), result, {}

    def _page(
        self, path: str, query: dict[str, str], rows: list[Any]
    ) -> tuple[int, Any, dict[str, str]]:
        size = min(int(query.get("per_page", "30")), 100, self.page_size)
        page = int(query.get("page", "1"))
        shown = rows[(page - 1) * size : page * size]
        more = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
        link = (
            {"Link": f'<{self.url}{path}?{more}&page={page + 1}>; rel="next"'}
            if page * size < len(rows)
            else {}
        )
        return 200, shown, link

    def serve_git(
        self, method: str, target: str, headers: dict[str, str], raw: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        """Serve the bare repository by git's own program, to who has the token."""
        expected = "Basic " + base64.b64encode(f"{self.git_user}:{self.token}".encode()).decode()
        if headers.get("authorization") != expected:
            return 401, b"", {"WWW-Authenticate": 'Basic realm="git"'}
        path, _, query = target.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.bare),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": re.sub(r"^/[^/]+/[^/]+\.git", "", path),
            "QUERY_STRING": query,
            "REQUEST_METHOD": method,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "REMOTE_USER": "x",
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=raw,
            env=environment,
            capture_output=True,
            timeout=60,
            check=True,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        rows = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return int(rows.pop("Status", "200").split()[0]), body, rows


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: HostServer

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del code, size

    def handle_request(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        raw = self._body(headers)
        if re.match(r"/[^/]+/[^/]+\.git/", self.path):
            status, data, more = self.host.serve_git(self.command, self.path, headers, raw)
            return self._send(status, data, more)
        self.host.requests.append((self.command, self.path))
        fault = next(
            (each for each in self.host.faults if each.fits(self.command, self.path)), None
        )
        if fault is not None:
            fault.times -= 1
            if fault.cut != "after":
                if fault.cut:
                    self.close_connection = True
                    return None
                return self._send(
                    fault.status, json.dumps({"message": "made to fail"}).encode(), fault.headers
                )
        status, body, more = self.host.answer(self.command, self.path, headers, raw)
        if fault is not None:
            if fault.then is not None:
                fault.then()
            self.close_connection = True
            return None
        return self._send(
            status, json.dumps(body).encode(), {"Content-Type": "application/json", **more}
        )

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            pieces = list[bytes]()
            while size := int(self.rfile.readline().strip() or b"0", 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(headers.get("content-length", "0")))

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


for _verb in ("GET", "POST", "PATCH", "PUT", "DELETE"):
    setattr(_Handler, f"do_{_verb}", _Handler.handle_request)

Served = TypeVar("Served", bound=HostServer)


@contextmanager
def serving_host(host: Served) -> Generator[Served]:
    """Serve in threads of their own."""
    handler = type("Handler", (_Handler,), {"host": host})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    host.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
