"""Clients of the Agent Client Protocol that others have published do a whole piece
of work with `codeloop acp`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.desk import EndToEndDesk, open_desk
from tests.interop.stage import INTEROP_FOLDER, fill_folder, find_cache, make_python_environment

pytestmark = pytest.mark.interop
EDITORS = INTEROP_FOLDER / "editors"
AGENT = [sys.executable, "-c", "from codeloop.cli.main import main; main()", "acp"]


def test_the_protocols_own_package_takes_every_message(tmp_path: Path) -> None:
    python = make_python_environment("editors", EDITORS / "requirements.txt") / "bin" / "python"
    with open_desk(tmp_path) as desk:
        command = [
            str(python),
            str(EDITORS / "editor.py"),
            "Please mend the total",
            str(desk.project),
            *AGENT,
        ]
        done = subprocess.run(
            command, env=desk.environment, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert seen["stop"] == "end_turn"
        assert seen["titles"] == ["python3 test_cart.py"]
        assert seen["listed"] == [True]
        assert "one count" in seen["text"]
        assert seen["loaded"] == seen["text"]
        assert {
            "plan",
            "tool_call",
            "tool_call_update",
            "usage_update",
            "available_commands_update",
        } <= {*seen["kinds"]}
        assert _is_mended(desk)


def _node_clients() -> Path:
    inputs = [EDITORS / name for name in ("package.json", "package-lock.json", "draft.mjs")]
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    return fill_folder(find_cache("editors", *inputs), inputs, [["node", "--version"], install])


def test_the_package_for_the_draft_takes_every_message(tmp_path: Path) -> None:
    with open_desk(tmp_path) as desk:
        command = [
            "node",
            _node_clients() / "draft.mjs",
            "Please mend the total",
            desk.project,
            *AGENT,
            "--protocol",
            "2",
        ]
        environment = {**desk.environment, "PATH": os.environ["PATH"]}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert (seen["version"], seen["stop"], seen["echoed"]) == (2, "end_turn", True)
        assert seen["asked"] == [["Run a command (bash)", "command", "python3 test_cart.py"]]
        assert "OK\r\n" in seen["output"]
        assert {
            "plan_update",
            "state_update",
            "terminal_update",
            "tool_call_update",
            "usage_update",
        } <= {*seen["kinds"]}
        assert seen["resumed"] == seen["text"]
        assert _is_mended(desk)


def test_acpx_does_a_piece_of_work(tmp_path: Path) -> None:
    folder = _node_clients()
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in AGENT) + "\n")
    agent.chmod(0o755)
    with open_desk(tmp_path / "desk") as desk:
        command = [
            folder / "node_modules/.bin/acpx",
            "--agent",
            agent,
            "--approve-all",
            "exec",
            "Please mend the total",
        ]
        environment = {**desk.environment, "PATH": os.environ["PATH"]}
        done = subprocess.run(
            command,
            cwd=desk.project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "[done] end_turn" in done.stdout
        assert "python3 test_cart.py (completed)" in done.stdout
        assert _is_mended(desk)


def _is_mended(desk: EndToEndDesk) -> bool:
    done = subprocess.run(
        [sys.executable, "test_cart.py"], cwd=desk.project, capture_output=True, check=False
    )
    return done.returncode == 0
