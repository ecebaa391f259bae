"""Measures the browser UI: the bytes of a first visit, and the speed of the page in Chromium.

The speed is compared with that of the reference's web app, where `make interop` has downloaded one.
"""

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

from bench.bench_run import BenchRun
from bench.process_runner import MeasurementFailed
from codeloop.web import STATIC_FOLDER
from tests.e2e.desk import open_desk
from tests.support.programs import CODELOOP_PROGRAM, LISTENING_PREFIX, ROOT, run_program

# As in `import{a}from"./chunk-X.js"`.
_IMPORT_PATTERN = re.compile(rb'(?:from|import)\s*"\./([\w.-]+\.js)"')
_LINK_PREFIX = "Open in a browser: "
_PASSWORD = "a password for the bench"
_DEADLINE_SECONDS = 400
_TASK_NAMES = ("open", "older", "scroll", "rewrite", "stream")


def measure_first_load(bench: BenchRun) -> None:
    """Measure the compressed bytes of the index, the style, the fonts,
    the script and the modules that it imports.
    """
    pending = ["index.html", "app.css", "icon.svg", "app.webmanifest", "app.js"]
    pending += [each.name for each in STATIC_FOLDER.glob("*.woff2")]
    loaded = set[str]()
    size = 0
    while pending:
        name = pending.pop()
        if name in loaded:
            continue
        loaded.add(name)
        body = (STATIC_FOLDER / name).read_bytes()
        size += len(gzip.compress(body, mtime=0))
        pending += [
            found.decode() for found in _IMPORT_PATTERN.findall(body) if name.endswith(".js")
        ]
    bench.put_own("web-first-load", size)


def measure_page_tasks(bench: BenchRun) -> None:
    """Measure the longest tasks of the page while it shows long content."""
    with _serve_apps(bench.folder / "web-tasks", None) as variables:
        figures = _run_program("speed", variables)
    for name in _TASK_NAMES:
        bench.put_own(f"web-{name}", figures[name])
    bench.put_own("web-frame", figures["medianFrame"])
    bench.put_own("web-memory", figures["heapMB"])


def compare_web_apps(bench: BenchRun) -> None:
    """Measure the page and the reference's web app in turn;
    the page alone where the other is not downloaded.
    """
    app = _find_reference_app()
    with _serve_apps(bench.folder / "web-compare", app) as variables:
        figures = _run_program("compare", variables)
    for suffix, app_name in (("", "ours"), ("-reference", "other")):
        for measured, milliseconds in figures.get(app_name, {}).items():
            # The page is cold in all of these; `web-open` and `web-scroll` are figures of a
            # page that is open already.
            budget = "web-paint" if measured == "paint" else f"web-cold-{measured}"
            bench.put_own(f"{budget}{suffix}", milliseconds)
    if "other" in figures:
        bench.put_own("web-paint-share", figures["ours"]["paint"] / figures["other"]["paint"])


def _find_reference_app() -> Path | None:
    """Return the folder of the reference's web app, as `make interop` keeps it."""
    base = (
        Path(os.environ.get("CODELOOP_INTEROP_CACHE") or Path.home() / ".cache")
        / "codeloop-interop"
    )
    return next((path.parent for path in sorted(base.glob("web-app-*/index.html"))), None)


@contextmanager
def _serve_apps(folder: Path, other: Path | None) -> Generator[dict[str, str]]:
    """Run `codeloop web`, and a server with the other app on the same sessions.

    Yield the variables that tell the programs of `web/e2e` the addresses and the password.
    """
    with ExitStack() as stack:
        desk = stack.enter_context(open_desk(folder))
        environment = desk.environment | {"CODELOOP_SERVER_PASSWORD": _PASSWORD}
        variables = {"CODELOOP_PASSWORD": _PASSWORD}
        if other is not None:
            command = [str(CODELOOP_PROGRAM), "serve", "--port", "0", "--web-dir", str(other)]
            variables["CODELOOP_OTHER"] = stack.enter_context(
                run_program(command, desk.project, environment, LISTENING_PREFIX)
            )
        running = stack.enter_context(
            subprocess.Popen(
                [str(CODELOOP_PROGRAM), "web", "--no-open", "--port", "0"],
                cwd=desk.project,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(running.terminate)
        lines = running.stderr or ()
        variables["CODELOOP_LINK"] = next(
            line.partition(_LINK_PREFIX)[2].strip() for line in lines if _LINK_PREFIX in line
        )
        yield variables


def _run_program(program: str, variables: dict[str, str]) -> dict[str, Any]:
    """Run a program of `web/e2e` and return the figures that it prints.
    Raises MeasurementFailed.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("node") is None or not (ROOT / "web/node_modules").exists():
        raise MeasurementFailed("node, Chromium and the packages of web/ (`make web`) are needed")
    done = subprocess.run(
        ["node", f"e2e/{program}.mjs"],
        cwd=ROOT / "web",
        env=os.environ | variables | {"CHROMIUM": chromium},
        capture_output=True,
        text=True,
        check=False,
        timeout=_DEADLINE_SECONDS,
    )
    if done.returncode:
        raise MeasurementFailed(done.stderr.strip()[-400:])
    return json.loads(done.stdout.splitlines()[-1])
