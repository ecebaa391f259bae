"""The browser UI: what a first visit loads, and how quick the page is in Chromium, beside the reference's web app."""

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Bench
from bench.measure import Failed
from codeloop.web import FILES
from tests.e2e.desk import end_to_end
from tests.support.programs import CODELOOP, LISTENING, ROOT, process

_IMPORT = re.compile(rb'(?:from|import)\s*"\./([\w.-]+\.js)"')
_LINK = "Open in a browser: "
_PASSWORD = "a password for the bench"
_SECONDS = 400
_TASKS = ("open", "older", "scroll", "rewrite", "stream")


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
    _put(bench, "web-first-load", size)


def tasks(bench: Bench) -> None:
    """Have the page show much, and note the processor time of its longest tasks."""
    with _served(bench.folder / "web-tasks", None) as given:
        found = _run("speed", given)
    for name in _TASKS:
        _put(bench, f"web-{name}", found[name])
    _put(bench, "web-frame", found["medianFrame"])
    _put(bench, "web-memory", found["heapMB"])


def compare(bench: Bench) -> None:
    """Open the page and the reference's web app in turn; where that is not at hand, ours alone."""
    app = _find_other()
    with _served(bench.folder / "web-compare", app) as given:
        found = _run("compare", given)
    for name, app_name in (("", "ours"), ("-reference", "other")):
        for what, ms in found.get(app_name, {}).items():
            _put(bench, f"web-{'cold-' * (what != 'paint')}{what}{name}", ms)
    if "other" in found:
        _put(bench, "web-paint-share", found["ours"]["paint"] / found["other"]["paint"])


def _put(bench: Bench, budget: str, value: float) -> None:
    for place in bench.places:
        if place.subject.name == "codeloop":
            bench.put(place, budget, value)


def _find_other() -> Path | None:
    """Return the folder of the reference's web app, as `make interop` keeps it."""
    base = Path(os.environ.get("CODELOOP_INTEROP_CACHE") or Path.home() / ".cache") / "codeloop-interop"
    return next((path.parent for path in sorted(base.glob("web-app-*/index.html"))), None)


@contextmanager
def _served(folder: Path, other: Path | None) -> Generator[dict[str, str]]:
    """Run `codeloop web`, and a server with the other app on the same sessions; yield what the programs need."""
    with ExitStack() as stack:
        desk = stack.enter_context(end_to_end(folder))
        environment = desk.environment | {"CODELOOP_SERVER_PASSWORD": _PASSWORD}
        given = {"CODELOOP_PASSWORD": _PASSWORD}
        if other is not None:
            command = [str(CODELOOP), "serve", "--port", "0", "--web-dir", str(other)]
            given["CODELOOP_OTHER"] = stack.enter_context(process(command, desk.project, environment, LISTENING))
        running = stack.enter_context(
            subprocess.Popen(
                [str(CODELOOP), "web", "--no-open", "--port", "0"],
                cwd=desk.project,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(running.terminate)
        lines = running.stderr or ()
        given["CODELOOP_LINK"] = next(line.partition(_LINK)[2].strip() for line in lines if _LINK in line)
        yield given


def _run(program: str, given: dict[str, str]) -> dict[str, Any]:
    """Run a program of `web/e2e` and return its figures. Raises Failed where it can't be run."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("node") is None or not (ROOT / "web/node_modules").exists():
        raise Failed("node, Chromium and the packages of web/ (`make web`) are needed")
    done = subprocess.run(
        ["node", f"e2e/{program}.mjs"],
        cwd=ROOT / "web",
        env=os.environ | given | {"CHROMIUM": chromium},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise Failed(done.stderr.strip()[-400:])
    return json.loads(done.stdout.splitlines()[-1])
