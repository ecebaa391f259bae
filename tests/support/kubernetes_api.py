"""A strict Kubernetes API with one namespace, which runs the command of a Job as
a process of this machine.
"""

import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Check = Callable[[Any, str], None]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?")
JOBS = "/apis/batch/v1/namespaces/work/jobs"
MISSING = "registry.example/missing:1"
"""An image that can't be pulled."""
PODS = "/api/v1/namespaces/work/pods"


class Refusal(Exception):
    """A request is refused, with this status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


def is_a(kind: type, pattern: re.Pattern[str] | None = None, most: int = 1_000_000) -> Check:
    """Return a check of a value's type (refused with 400),
    and of its text or number (refused with 422).
    """

    def check(value: Any, where: str) -> None:
        if type(value) is not kind:
            raise Refusal(
                400, "BadRequest", f"{where}: {type(value).__name__} is no {kind.__name__}"
            )
        if pattern is not None and pattern.fullmatch(value) is None:
            raise Refusal(422, "Invalid", f"{where}: Invalid value: {value!r}")
        if (kind is int and value < 0) or (kind is str and len(value) > most):
            raise Refusal(422, "Invalid", f"{where}: Invalid value: {value!r}")

    return check


def has(required: dict[str, Check], optional: dict[str, Check]) -> Check:
    """Return a check of an object: an unknown field is refused with 400,
    a missing required field with 422.
    """

    def check(value: Any, where: str) -> None:
        is_a(dict)(value, where)
        for key, found in value.items():
            if key not in required | optional:
                raise Refusal(
                    400, "BadRequest", f'strict decoding error: unknown field "{where}.{key}"'
                )
            (required | optional)[key](found, f"{where}.{key}")
        for key in required:
            if not value.get(key):
                raise Refusal(422, "Invalid", f"{where}.{key}: Required value")

    return check


def each(item: Check) -> Check:
    """Return a check of the items of a list."""

    def check(value: Any, where: str) -> None:
        is_a(list)(value, where)
        for at, found in enumerate(value):
            item(found, f"{where}[{at}]")

    return check


def maps(key: re.Pattern[str], item: Check) -> Check:
    """Return a check of an object with free keys."""

    def check(value: Any, where: str) -> None:
        is_a(dict)(value, where)
        for name, found in value.items():
            is_a(str, key)(name, where)
            item(found, f"{where}.{name}")

    return check


def one_of(*words: str) -> Check:
    """Return a check of a text that has to be one of `words`."""
    return is_a(str, re.compile("|".join(words)))


TEXT, COUNT, FLAG = is_a(str), is_a(int), is_a(bool)
LABELS = maps(LABEL, is_a(str, LABEL, 63))
AMOUNTS = maps(re.compile("cpu|memory"), is_a(str, QUANTITY))
CONTAINER = has(
    {"name": is_a(str, NAME, 63), "image": TEXT},
    {
        "command": each(TEXT),
        "args": each(TEXT),
        "env": each(has({"name": TEXT}, {"value": TEXT})),
        "envFrom": each(has({"secretRef": has({"name": is_a(str, NAME, 253)}, {})}, {})),
        "resources": has({}, {"requests": AMOUNTS, "limits": AMOUNTS}),
    },
)
POD = has(
    {"containers": each(CONTAINER), "restartPolicy": one_of("Never", "OnFailure")},
    {
        "terminationGracePeriodSeconds": COUNT,
        "automountServiceAccountToken": FLAG,
        "serviceAccountName": is_a(str, NAME, 253),
    },
)
JOB = has(
    {
        "apiVersion": one_of("batch/v1"),
        "kind": one_of("Job"),
        "metadata": has(
            {"name": is_a(str, NAME, 63)}, {"labels": LABELS, "annotations": maps(LABEL, TEXT)}
        ),
        "spec": has(
            {"template": has({"spec": POD}, {"metadata": has({}, {"labels": LABELS})})},
            {
                "backoffLimit": COUNT,
                "completions": COUNT,
                "parallelism": COUNT,
                "activeDeadlineSeconds": COUNT,
            },
        ),
    },
    {},
)
DELETE = has(
    {"kind": one_of("DeleteOptions"), "apiVersion": one_of("v1")},
    {"propagationPolicy": one_of("Background", "Foreground", "Orphan")},
)
LIST_QUERY = {"labelSelector", "limit", "continue"}
WATCH_QUERY = {"labelSelector", "watch", "resourceVersion", "allowWatchBookmarks", "timeoutSeconds"}


class KubernetesServer:
    """The server, whose Jobs are processes. `environment`: variables of every pod;
    `secrets`: variables by secret.

    `failures`: (method, status) of requests that will be refused, once each;
    `requests`: all requests so far.
    """

    def __init__(
        self,
        folder: Path,
        environment: dict[str, str],
        secrets: dict[str, dict[str, str]],
        token: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.token = token
        self.environment = environment
        self.secrets = secrets
        self.failures: list[tuple[str, int]] = []
        self.requests: list[tuple[str, str]] = []
        self.starts: dict[str, int] = {}
        self.conflicts = 0
        self.page = 500
        self.can_read_logs = True
        self.jobs: dict[str, dict[str, Any]] = {}
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._events: list[tuple[int, dict[str, Any]]] = []
        self._version = 100
        self._oldest = 0
        self._cuts = 0
        self.changed = threading.Condition()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            server_version = "kube"

            def handle_one_request(self) -> None:
                with suppress(ConnectionError, ssl.SSLError):
                    super().handle_one_request()

            def do_GET(self) -> None:
                api.answer(self)

            def do_POST(self) -> None:
                api.answer(self)

            def do_DELETE(self) -> None:
                api.answer(self)

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                del code, size

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End the server and all processes."""
        self._http.shutdown()
        self._http.server_close()
        for process in self._processes.values():
            _kill(process)

    def forget_history(self) -> None:
        """Forget all changes so far, and end all watches;
        a watch that continues from before gets 410.
        """
        with self.changed:
            self._version += 1
            self._oldest, self._cuts = self._version, self._cuts + 1
            self.changed.notify_all()

    def end_watches(self) -> None:
        """End all watches; they may continue from where they were."""
        with self.changed:
            self._cuts += 1
            self.changed.notify_all()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        url = urlsplit(handler.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query)))
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        self.requests.append((handler.command, handler.path))
        try:
            self._admit(handler, body)
            if url.path == JOBS and query.get("watch") == "true":
                self._watch(handler, query)
                return
            found = self._carry_out(
                handler.command, url.path, query, json.loads(body) if body else None
            )
        except Refusal as refusal:
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": refusal.code,
            }
            _send(
                handler, refusal.code, {**status, "reason": refusal.reason, "message": str(refusal)}
            )
        else:
            _send(handler, 201 if handler.command == "POST" else 200, found)

    def _admit(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        for failure in self.failures:
            if failure[0] == handler.command:
                self.failures.remove(failure)
                raise Refusal(failure[1], "InternalError", "etcd has no leader")
        if self.token and handler.headers.get("authorization") != f"Bearer {self.token}":
            raise Refusal(401, "Unauthorized", "Unauthorized")
        if "application/json" not in handler.headers.get("accept", ""):
            raise Refusal(406, "NotAcceptable", "only application/json")
        if body and handler.headers.get("content-type") != "application/json":
            raise Refusal(415, "UnsupportedMediaType", "the body is not application/json")

    def _carry_out(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        if not path.startswith((JOBS, PODS)):
            if "/namespaces/" in path:
                raise Refusal(403, "Forbidden", "jobs is forbidden in this namespace")
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        name = path.removeprefix(f"{JOBS}/")
        match method:
            case "POST" if path == JOBS and not query:
                return self._create(body)
            case "GET" if path == JOBS and query.keys() <= LIST_QUERY:
                return self._list(query)
            case "GET" if path.startswith(f"{JOBS}/") and not query:
                with self.changed:
                    return self._find(name)
            case "DELETE" if path.startswith(f"{JOBS}/") and not query:
                DELETE(body, "DeleteOptions")
                return self._delete(name)
            case "GET" if path == PODS and query.keys() == {"labelSelector"}:
                return self._pods(query["labelSelector"])
            case "GET" if path.startswith(f"{PODS}/") and path.endswith("/log"):
                return self._log(path.removeprefix(f"{PODS}/").removesuffix("/log"), query)
            case _:
                raise Refusal(400, "BadRequest", f"{method} {path} {query}")

    def _find(self, name: str) -> dict[str, Any]:
        if name not in self.jobs:
            raise Refusal(404, "NotFound", f'jobs.batch "{name}" not found')
        return self.jobs[name]

    def _create(self, body: Any) -> dict[str, Any]:
        JOB(body, "Job")
        name = body["metadata"]["name"]
        with self.changed:
            if name in self.jobs:
                self.conflicts += 1
                raise Refusal(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
            made = {
                "uid": str(uuid.uuid4()),
                "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            job = {
                **body,
                "metadata": {**body["metadata"], **made, "namespace": "work"},
                "status": {},
            }
            self.jobs[name] = job
            self.starts[name] = self.starts.get(name, 0) + 1
            self._record("ADDED", job)
            self._run(name, job)
            return job

    def _run(self, name: str, job: dict[str, Any]) -> None:
        container = job["spec"]["template"]["spec"]["containers"][0]
        if container["image"] == MISSING:
            return
        environment = {
            **self.environment,
            **{row["name"]: row["value"] for row in container.get("env", ())},
        }
        for source in container.get("envFrom", ()):
            environment |= self.secrets[source["secretRef"]["name"]]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                container["command"],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes[name] = process
        threading.Thread(target=self._follow, args=(name, job, process), daemon=True).start()

    def _follow(self, name: str, job: dict[str, Any], process: subprocess.Popen[bytes]) -> None:
        condition = {"type": "Complete", "status": "True"}
        try:
            if process.wait(job["spec"]["activeDeadlineSeconds"]):
                condition = {
                    "type": "Failed",
                    "status": "True",
                    "reason": "BackoffLimitExceeded",
                    "message": "failed",
                }
        except subprocess.TimeoutExpired:
            _kill(process)
            (self._folder / f"{name}.log").unlink()
            condition = {
                "type": "Failed",
                "status": "True",
                "reason": "DeadlineExceeded",
                "message": "too long",
            }
        with self.changed:
            if self.jobs.get(name) is job:
                self.jobs[name] = {
                    **job,
                    "metadata": dict(job["metadata"]),
                    "status": {"conditions": [condition]},
                }
                self._record("MODIFIED", self.jobs[name])

    def _delete(self, name: str) -> dict[str, Any]:
        with self.changed:
            job = self._find(name)
            if (process := self._processes.pop(name, None)) is not None:
                threading.Thread(target=_kill, args=(process,)).start()
            (self._folder / f"{name}.log").unlink(missing_ok=True)
            del self.jobs[name]
            self._record("DELETED", {**job, "metadata": dict(job["metadata"])})
            return {"kind": "Status", "status": "Success"}

    def _record(self, kind: str, job: dict[str, Any]) -> None:
        self._version += 1
        job["metadata"]["resourceVersion"] = str(self._version)
        self._events.append((self._version, json.loads(json.dumps({"type": kind, "object": job}))))
        self.changed.notify_all()

    def _list(self, query: dict[str, str]) -> dict[str, Any]:
        with self.changed:
            found = [job for job in self.jobs.values() if _has_labels(job, query["labelSelector"])]
            start, size = int(query.get("continue") or 0), min(int(query["limit"]), self.page)
            more = str(start + size) if start + size < len(found) else ""
            about = {"resourceVersion": str(self._version), "continue": more}
            return {
                "kind": "JobList",
                "apiVersion": "batch/v1",
                "metadata": about,
                "items": found[start : start + size],
            }

    def _watch(self, handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        if (
            handler.command != "GET"
            or not query.keys() <= WATCH_QUERY
            or not query["resourceVersion"].isdigit()
        ):
            raise Refusal(400, "BadRequest", f"a watch with {query}")
        version, cuts = int(query["resourceVersion"]), self._cuts
        until = time.monotonic() + int(query["timeoutSeconds"])
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        while time.monotonic() < until:
            with self.changed:
                if cuts != self._cuts:
                    break
                if version < self._oldest:
                    gone = {
                        "kind": "Status",
                        "code": 410,
                        "reason": "Expired",
                        "message": "too old resource version",
                    }
                    _chunk(handler, {"type": "ERROR", "object": gone})
                    break
                news = [event for at, event in self._events if at > version]
                if not news:
                    self.changed.wait(0.5)
                version = max(version, *(at for at, _ in self._events)) if news else version
            for event in news:
                if _has_labels(event["object"], query["labelSelector"]):
                    _chunk(handler, event)
            if not news:
                about = {"resourceVersion": str(version)}
                _chunk(handler, {"type": "BOOKMARK", "object": {"kind": "Job", "metadata": about}})
        handler.wfile.write(b"0\r\n\r\n")

    def _pods(self, selector: str) -> dict[str, Any]:
        key, _, name = selector.partition("=")
        assert key == "job-name"
        # a Job that is just being made or deleted has no process,
        # and counts as one that never began
        with self.changed:
            if name in self.jobs and name not in self._processes:
                waiting = {
                    "reason": "ImagePullBackOff",
                    "message": f'Back-off pulling image "{MISSING}"',
                }
                state = {"name": "codeloop", "state": {"waiting": waiting}}
                status = {"phase": "Pending", "containerStatuses": [state]}
                return {
                    "kind": "PodList",
                    "items": [{"metadata": {"name": f"{name}-x7k2p"}, "status": status}],
                }
            is_there = (self._folder / f"{name}.log").exists()
        return {
            "kind": "PodList",
            "items": [{"metadata": {"name": f"{name}-x7k2p"}}] if is_there else [],
        }

    def _log(self, pod: str, query: dict[str, str]) -> bytes:
        if query.keys() != {"container", "tailLines"} or query["container"] != "codeloop":
            raise Refusal(400, "BadRequest", f"a log with {query}")
        if not self.can_read_logs:
            raise Refusal(403, "Forbidden", "pods/log is forbidden")
        try:
            data = (self._folder / f"{pod.removesuffix('-x7k2p')}.log").read_bytes()
        except FileNotFoundError:
            raise Refusal(404, "NotFound", f'pods "{pod}" not found') from None
        return b"".join(data.splitlines(keepends=True)[-int(query["tailLines"]) :])


def _has_labels(job: dict[str, Any], selector: str) -> bool:
    key, _, value = selector.partition("=")
    return job["metadata"].get("labels", {}).get(key) == value


def _send(handler: BaseHTTPRequestHandler, status: int, answer: Any) -> None:
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    handler.send_response(status)
    handler.send_header(
        "content-type", "text/plain" if isinstance(answer, bytes) else "application/json"
    )
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _chunk(handler: BaseHTTPRequestHandler, event: dict[str, Any]) -> None:
    data = json.dumps(event).encode() + b"\n"
    handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
    handler.wfile.flush()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Terminate a pod, and kill it if it does not end."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
