"""The reference's own web app, served by our server, is used in Chromium as a person uses it."""

import os
import shutil
from pathlib import Path

import pytest

from tests.interop.stage import (
    INTEROP_FOLDER,
    PASSWORD,
    find_cache,
    find_reference_program,
    install_npm_packages,
    open_stage,
)
from tests.interop.web_files import INDEX_NAME, fetch_web_app
from tests.support.programs import CODELOOP_PROGRAM, LISTENING_PREFIX, make_environment, run_program

pytestmark = pytest.mark.interop
STEPS = 31


def chromium() -> str:
    """Return the path of the browser."""
    found = (
        os.environ.get("CODELOOP_CHROMIUM")
        or shutil.which("chromium")
        or shutil.which("chromium-browser")
    )
    return found or pytest.skip(
        "there is no Chromium on the PATH: install it (Debian: apt-get install chromium)"
    )


def web_app(home: Path) -> Path:
    """Return the folder of the reference's web app, fetched once for each version."""
    program = find_reference_program()
    folder = find_cache(
        "web-app", INTEROP_FOLDER / "package-lock.json", INTEROP_FOLDER / "web_files.py"
    )
    if not (folder / INDEX_NAME).exists():
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        environment = make_environment(home) | quiet | {"OPENCODE_SERVER_PASSWORD": PASSWORD}
        with run_program(
            [program, "serve", "--port", "0"], home, environment, LISTENING_PREFIX
        ) as url:
            assert fetch_web_app(url, PASSWORD, fresh) > 100
        if folder.exists():
            shutil.rmtree(fresh)
        else:
            fresh.rename(folder)
    return folder


def test_the_web_app_works_and_no_request_of_it_fails(tmp_path: Path) -> None:
    browser, packages = chromium(), install_npm_packages()
    (tmp_path / "reference").mkdir()
    folder = web_app(tmp_path / "reference")
    with open_stage(tmp_path) as stage:
        command = [str(CODELOOP_PROGRAM), "serve", "--port", "0", "--web-dir", str(folder)]
        with run_program(command, stage.project, stage.environment, LISTENING_PREFIX) as url:
            more = {
                "BASE_URL": url,
                "PASSWORD": PASSWORD,
                "DIRECTORY": str(stage.project),
                "PROFILE": str(tmp_path / "profile"),
                "CHROMIUM": browser,
                "SHOTS": os.environ.get("CODELOOP_PICTURES", ""),
            }
            done = stage.ask(["node", "tour.mjs"], more, cwd=packages, timeout=500)
        typed = stage.project / "typed.txt"
        assert [line for line in done.stdout.splitlines() if not line.startswith("ok ")] == [], (
            done.stderr
        )
        assert len(done.stdout.splitlines()) == STEPS, done.stdout + done.stderr
        assert typed.read_text() == "typed\n", "the terminal's line"
        assert (stage.project / "note.txt").read_text() == "kept\n"
