"""The web service of the examples: FastAPI under `uvicorn[standard]`, whose loop is uvloop."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, serving
from tests.interop.stage import fill_folder
from tests.support.answers import Answer
from tests.support.installed_programs import CACHE_FOLDER
from tests.support.programs import ROOT

pytestmark = [pytest.mark.interop, pytest.mark.slow]
PACKAGES = ("fastapi==0.165.0", "uvicorn[standard]==0.54.0")


def find_packages() -> Path:
    """Return the folder of packages for this interpreter, beside its own."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq"]
    install = [*pip, "install", "--target", "packages", *PACKAGES]
    folder = (
        CACHE_FOLDER / f"web-{version}-{'-'.join(each.partition('==')[2] for each in PACKAGES)}"
    )
    return fill_folder(folder, [], [install]) / "packages"


@pytest.fixture
def address(tmp_path: Path) -> Generator[str]:
    desk = Desk(tmp_path)
    service = ROOT / "examples" / "web"
    with serving([Answer(text="Hello there.", deltas=4)]) as model:
        desk.use(model)
        environment = desk.options()["env"] | {
            "PYTHONPATH": os.pathsep.join([str(find_packages()), str(service), str(ROOT / "src")]),
            "AGENT_DIRECTORY": str(desk.work),
        }
        words = [sys.executable, "-m", "uvicorn", "service:app", "--port", "0"]
        with subprocess.Popen(
            words, cwd=desk.work, env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            lines: list[str] = []
            try:
                for line in process.stderr:
                    lines.append(line)
                    if "running on" in line:
                        yield line.partition("running on ")[2].split()[0]
                        break
                else:
                    pytest.fail("".join(lines))
            finally:
                process.terminate()
                process.communicate()


def post(url: str, **data: Any) -> bytes:
    request = urllib.request.Request(
        url, json.dumps(data).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        return response.read()


def test_the_web_service_answers_under_uvloop(address: str) -> None:
    first = json.loads(post(f"{address}/ask", text="hello"))
    assert first["text"] == "Hello there."
    second = json.loads(post(f"{address}/ask", text="again", thread=first["thread"]))
    assert second["thread"] == first["thread"]
    assert post(f"{address}/stream", text="and now?").decode() == "Hello there."


def test_uvicorn_takes_uvloop_by_itself() -> None:
    program = "import asyncio\nfrom uvicorn import Config\nprint(Config('x:y').get_loop_factory().__module__)"
    environment = {**os.environ, "PYTHONPATH": str(find_packages())}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "uvloop" in done.stdout, done.stderr
