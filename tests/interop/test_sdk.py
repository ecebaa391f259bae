"""The reference's own client, both entry points, drives our server."""

import json
from pathlib import Path

import pytest

from tests.interop.stage import PASSWORD, install_npm_packages, open_stage, run_server
from tests.support.programs import CODELOOP_PROGRAM

pytestmark = pytest.mark.interop
ENTRIES = {"first": ".", "v2": "./v2"}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_step_of_the_client_does_what_it_should(entry: str, tmp_path: Path) -> None:
    packages = install_npm_packages()
    with open_stage(tmp_path) as stage, run_server(stage) as url:
        more = {"BASE_URL": url, "PASSWORD": PASSWORD, "DIRECTORY": str(stage.project)}
        done = stage.ask(["node", "sdk.mjs", entry], more, cwd=packages, timeout=600)
    lines = done.stdout.splitlines()
    assert "\n".join(line for line in lines if not line.startswith("ok ")) == ""
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) > 20


@pytest.mark.parametrize("entry", ["@opencode-ai/sdk", "@opencode-ai/sdk/v2"])
def test_its_launcher_starts_our_server_from_the_path(entry: str, tmp_path: Path) -> None:
    packages = install_npm_packages()
    with open_stage(tmp_path) as stage:
        stage.configure({})
        shim = stage.folder / "bin" / "opencode"
        shim.write_text(f'#!/bin/sh\nexec "{CODELOOP_PROGRAM}" "$@"\n')
        shim.chmod(0o755)
        more = {"CONFIG": json.dumps(stage.config | {"model": "mine/talker"})}
        done = stage.ask(["node", "launch.mjs", entry], more, cwd=packages)
    assert done.stdout.startswith("ok http://127.0.0.1:"), done.stdout + done.stderr
    assert done.returncode == 0
