"""Test a program around the agent without a model,
a key or the network: its answers are a recording.

`python replay_in_tests.py record` asks the model and writes `greeting.jsonl`.
pytest plays it back: the tools are real.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import codeloop

RECORDING = Path(__file__).parent / "recordings" / "greeting.jsonl"


async def greet(project: codeloop.AgentProject, name: str) -> Path:
    """Have a greeting written; this is what is tested."""
    answer = await project.ask(f"Write a greeting for {name} into greeting.txt.")
    return Path(answer.files[0])


def test_the_greeting_is_written(tmp_path: Path) -> None:
    async def run() -> None:
        async with codeloop.open(tmp_path, replay=RECORDING, profile="yolo") as project:
            assert "Ada" in (await greet(project, "Ada")).read_text()

    asyncio.run(run())


async def record() -> None:
    """Ask a real model, and write down what it says."""
    with tempfile.TemporaryDirectory() as folder:
        async with codeloop.open(folder, record=RECORDING, profile="yolo") as project:
            await greet(project, "Ada")


if __name__ == "__main__" and sys.argv[1:] == ["record"]:
    asyncio.run(record())
