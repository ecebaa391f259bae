"""The page in Chromium, on a real server with a scripted model: each program
of `web/e2e` is one visit.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.desk import EndToEndDesk, open_desk
from tests.extend.mcp.remote import serving
from tests.extend.mcp.world import PLAIN
from tests.support.free_port import find_free_port
from tests.support.programs import CODELOOP_PROGRAM, make_provider_config, write_config

pytestmark = pytest.mark.e2e
READY = "Open in a browser: "
# The longest first.
PROGRAMS = (
    "speed",
    "work",
    "asks",
    "states",
    "follow",
    "far",
    "tabs",
    "audit",
    "payloads",
    "restart",
    "share",
    "settings",
    "agree",
    "several",
    "facts",
    "looks",
    "places",
)
SECONDS = 600
"""A visit that takes longer hangs; on a machine with other work, one takes minutes."""


@contextmanager
def configured(folder: Path, *, has_servers: bool, has_own_work: bool) -> Generator[EndToEndDesk]:
    """Yield a project; where they are wanted with two MCP servers, one that users sign in at,
    and a second model.
    """
    with ExitStack() as stack:
        desk = stack.enter_context(open_desk(folder))
        if has_own_work:
            desk.commit_more()
        if has_servers:
            (folder / "oauth").mkdir()
            url = stack.enter_context(serving("oauth", str(folder / "oauth")))
            notes = {"type": "local", "command": [sys.executable, str(PLAIN)]}
            mine = make_provider_config(desk.model_url, "coder", "thinker")
            thinker = mine["models"]["thinker"]
            mine["models"]["thinker"] = thinker | {
                "variants": {"deep": {"reasoningEffort": "high"}}
            }
            provider = {"mine": mine}
            more = {
                "mcp": {"notes": notes, "cloud": {"type": "remote", "url": url}},
                "provider": provider,
            }
            write_config(desk.home, desk.config | more)
        yield desk


@contextmanager
def visit(
    folder: Path, *, has_servers: bool = False, has_own_work: bool = False
) -> Generator[dict[str, str]]:
    """Run `codeloop web` and yield what a program needs to visit it.
    `has_own_work`: with uncommitted files.
    """
    with (
        configured(folder, has_servers=has_servers, has_own_work=has_own_work) as desk,
        subprocess.Popen(
            [str(CODELOOP_PROGRAM), "web", "--no-open", "--port", "0"],
            cwd=desk.project,
            env=desk.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as running,
    ):
        try:
            assert running.stderr is not None
            link = next(
                line.partition(READY)[2].strip() for line in running.stderr if READY in line
            )
            given = {
                "CODELOOP_LINK": link,
                "CODELOOP_FILE": str(desk.project / "cart.py"),
                "CODELOOP_PROGRAM": str(CODELOOP_PROGRAM),
            }
            yield desk.environment | given
        finally:
            running.terminate()


@contextmanager
def visit_with_restarts(folder: Path) -> Generator[dict[str, str]]:
    """Yield how a program starts the server itself,
    each time at the same port and with the same password.
    """
    with open_desk(folder) as desk:
        command = [str(CODELOOP_PROGRAM), "web", "--no-open", "--port", str(find_free_port())]
        given = {"command": command, "cwd": str(desk.project)}
        yield desk.environment | {
            "CODELOOP_START": json.dumps(given),
            "CODELOOP_SERVER_PASSWORD": "a long password",
        }


@pytest.fixture(scope="session")
def chromium() -> str:
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("Chromium is not installed here")
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_visit(program: str, source: Path, chromium: str, tmp_path: Path) -> None:
    if program == "agree" and shutil.which("tmux") is None:
        pytest.skip("there is no tmux on the PATH: apt-get install tmux")
    here = (
        visit_with_restarts(tmp_path)
        if program in {"restart", "states", "follow"}
        else visit(
            tmp_path,
            has_servers=program in {"settings", "several"},
            has_own_work=program == "facts",
        )
    )
    with here as given:
        done = subprocess.run(
            ["node", f"e2e/{program}.mjs"],
            cwd=source,
            env=os.environ | given | {"CHROMIUM": chromium},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stderr[-4_000:]
