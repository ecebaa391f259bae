"""The reference's own web app, served by our server, is used in Chromium as a person uses it."""

import os
import shutil
from pathlib import Path

import pytest

from tests.interop.stage import HERE, PASSWORD, cache, npm_packages, reference_program, staged
from tests.interop.web_files import INDEX, fetch_web_app
from tests.support.programs import CODELOOP, LISTENING, environment_in, process

pytestmark = pytest.mark.interop
STEPS = 31


def chromium() -> str:
    """Return the path of the browser."""
    found = os.environ.get("CODELOOP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return found or pytest.skip("there is no Chromium on the PATH: install it (Debian: apt-get install chromium)")


def web_app(home: Path) -> Path:
    """Return the folder of the reference's web app, fetched once for each version."""
    program = reference_program()
    folder = cache("web-app", HERE / "package-lock.json", HERE / "web_files.py")
    if not (folder / INDEX).exists():
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        environment = environment_in(home) | quiet | {"OPENCODE_SERVER_PASSWORD": PASSWORD}
        with process([program, "serve", "--port", "0"], home, environment, LISTENING) as url:
            assert fetch_web_app(url, PASSWORD, fresh) > 100
        if folder.exists():
            shutil.rmtree(fresh)
        else:
            fresh.rename(folder)
    return folder


def test_the_web_app_works_and_no_request_of_it_fails(tmp_path: Path) -> None:
    browser, packages = chromium(), npm_packages()
    (tmp_path / "reference").mkdir()
    folder = web_app(tmp_path / "reference")
    with staged(tmp_path) as stage:
        command = [str(CODELOOP), "serve", "--port", "0", "--web-dir", str(folder)]
        with process(command, stage.project, stage.environment, LISTENING) as url:
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
        assert [line for line in done.stdout.splitlines() if not line.startswith("ok ")] == [], done.stderr
        assert len(done.stdout.splitlines()) == STEPS, done.stdout + done.stderr
        assert typed.read_text() == "typed\n", "the terminal's line"
        assert (stage.project / "note.txt").read_text() == "kept\n"
