"""codeloop in the harnesses of others: an oracle scores 1, doing nothing 0,
codeloop with a scripted model 1.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import KEY, call, serving, steps
from tests.interop.stage import fill_folder
from tests.support.answers import Answer
from tests.support.installed_programs import CACHE_FOLDER

HERE = Path(__file__).parent / "harnesses"
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "harnesses"
PACKAGES = ("harbor==0.26.0", "inspect-ai==0.3.285")
pytestmark = [pytest.mark.interop, pytest.mark.slow]
FIX = steps(
    call("edit", filePath="calc.py", oldString="a - b", newString="a + b"),
    Answer(text="Fixed: `add` subtracted."),
)


def find_newer_python() -> str:
    """Return a Python from 3.12 on that starts: not each name that pyenv puts on the PATH does."""
    names = ("python3.12", "python3.13", "python3.14")
    installed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for program in (
        *names,
        *(str(path) for name in names for path in installed.glob(f"*/bin/{name}")),
    ):
        found = shutil.which(program)
        if (
            found
            and subprocess.run(
                [found, "-m", "venv", "--help"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return found
    pytest.skip("no Python from 3.12 on")


def programs() -> Path:
    """Return the folder of programs of an environment with both harnesses,
    which need Python 3.12.
    """
    python = find_newer_python()
    pip = [
        "bin/python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "-qq",
        "install",
        *PACKAGES,
    ]
    return (
        fill_folder(
            CACHE_FOLDER / f"harnesses-{'-'.join(PACKAGES)}",
            [],
            [[python, "-m", "venv", "."], ["env", *pip]],
        )
        / "bin"
    )


def run(program: Path, *arguments: str, folder: Path, **environment: str) -> None:
    """Run a harness to its end, with codeloop on its PATH."""
    paths = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{HERE}:{EXAMPLES}",
    }
    base = {"HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True", **paths, **environment}
    command = [str(program), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=base, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def settings(url: str) -> str:
    model = {
        "cost": {"input": 1.0, "output": 2.0},
        "limit": {"context": 200_000, "output": 8_000},
        "tool_call": True,
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": KEY},
        "models": {"m": model},
    }
    return json.dumps({"provider": {"local": provider}})


def test_harbor_scores_the_oracle_nothing_and_codeloop(tmp_path: Path) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed, and stands in for containers here")
    agents: list[dict[str, Any]] = [
        {"name": "oracle"},
        {"name": "nop"},
        {
            "import_path": "harbor_agent:Codeloop",
            "model_name": "local/m",
            "kwargs": {"skip_install": True},
        },
    ]
    job = {
        "job_name": "job",
        "jobs_dir": "jobs",
        "agents": agents,
        "environment": {"type": None, "import_path": "local_environment:LocalEnvironment"},
        "tasks": [{"path": str(HERE / "task")}],
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    with serving(FIX) as server:
        given = settings(server.url)
        run(
            programs() / "harbor",
            "run",
            "-y",
            "-q",
            "-c",
            "job.json",
            folder=tmp_path,
            CODELOOP_CONFIG_CONTENT=given,
        )
    trials = {
        result["agent_info"]["name"]: (result, path.parent)
        for path in (tmp_path / "jobs" / "job").glob("*/result.json")
        if (result := json.loads(path.read_text()))
    }
    rewards = {
        name: result["verifier_result"]["rewards"]["reward"] for name, (result, _) in trials.items()
    }
    assert rewards == {"oracle": 1.0, "nop": 0.0, "codeloop": 1.0}
    result, folder = trials["codeloop"]
    used = result["agent_result"]
    assert (used["n_input_tokens"], used["n_output_tokens"]) == (200, 40)
    assert used["cost_usd"] == pytest.approx(0.00028)
    check_trajectory(folder / "agent" / "trajectory.json")


def check_trajectory(path: Path) -> None:
    """Read a trajectory as the harness does, which refuses what is not as the format says."""
    reads = "Trajectory.model_validate_json(pathlib.Path(sys.argv[1]).read_text())"
    code = f"import pathlib, sys; from harbor.models.trajectories import Trajectory; {reads}"
    subprocess.run([programs() / "python", "-c", code, path], check=True)
    steps = json.loads(path.read_text())["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent"]
    assert steps[1]["tool_calls"][0]["function_name"] == "edit"
    assert steps[2]["message"] == "Fixed: `add` subtracted."


def test_inspect_scores_the_oracle_nothing_and_codeloop(tmp_path: Path) -> None:
    with serving(FIX) as server:
        given = settings(server.url)
        program = str(HERE / "inspect_run.py")
        run(
            programs() / "python",
            program,
            "scores.json",
            folder=tmp_path,
            CODELOOP_CONFIG_CONTENT=given,
        )
    found = json.loads((tmp_path / "scores.json").read_text())
    assert {name: row["score"] for name, row in found.items()} == {
        "oracle": 1.0,
        "nothing": 0.0,
        "codeloop": 1.0,
    }
    ours = found["codeloop"]
    assert (ours["input_tokens"], ours["output_tokens"], ours["tools"]) == (200, 40, ["edit"])
    assert ours["cost"] == pytest.approx(0.00028)
    assert ours["answer"] == "Fixed: `add` subtracted."
    assert len(ours["trajectory"]["steps"]) == 3
