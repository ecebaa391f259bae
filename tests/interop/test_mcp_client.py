"""The protocol's published client for JavaScript prompts a session of `codeloop mcp serve`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, call, serving, steps
from tests.interop.stage import INTEROP_FOLDER, fill_folder, find_cache
from tests.support.answers import Answer

pytestmark = pytest.mark.interop
INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]


def test_it_prompts_a_session_is_asked_and_goes_on(tmp_path: Path) -> None:
    inputs = [
        INTEROP_FOLDER / "mcp" / name
        for name in ("package.json", "package-lock.json", "client.mjs")
    ]
    packages = fill_folder(find_cache("mcp", *inputs), inputs, [["node", "--version"], INSTALL])
    desk = Desk(tmp_path)
    with serving(
        steps(call("write", filePath="a.txt", content="x"), Answer(text="Written."))
    ) as model:
        desk.use(model)
        environment = {**os.environ, **desk.options()["env"], "PROJECT": str(desk.work)}
        command = ["node", "client.mjs", *desk.command, "mcp", "serve", "--profile", "ask"]
        done = subprocess.run(
            command,
            cwd=packages,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    seen: dict[str, list[Any]] = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        seen.setdefault(found["kind"], []).append(found["value"])
    assert seen["tools"] == [["prompt", "continue", "status", "stop"]]
    assert "write a.txt" in seen["progress"]
    assert "Create a.txt" in seen["asked"][0]
    assert (seen["report"][0]["status"], seen["report"][0]["answer"]) == ("done", "Written.")
    assert seen["again"][0]["session_id"] == seen["report"][0]["session_id"]
    assert (desk.work / "a.txt").read_text() == "x"
