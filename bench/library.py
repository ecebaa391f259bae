"""Measures the library: `import codeloop`, and a session with one call of a function,
each in a process of its own.
"""

import sys
from pathlib import Path

from bench.bench_run import BenchRun
from bench.process_runner import Command
from bench.subjects import Installation

TURN_COUNT = 30
IMPORT_PROGRAMS = {
    "empty": "pass",
    "import": "import codeloop",
    "asyncio": "import asyncio",
    "names": "import asyncio, codeloop; codeloop.open, codeloop.AgentSession, codeloop.Answer, codeloop.TurnFailed",
}
SESSION_PROGRAM = """
import asyncio, statistics, sys, time
import codeloop


def weather(town: str) -> str:
    "Tell the weather of a town."
    return f"{town}: 4 degrees"


async def main(script, result):
    taken = []
    async with codeloop.open(".", replay=script, tools=[weather]) as project:
        for _ in range(TURNS):
            start = time.perf_counter()
            session = await project.session()
            answer = await session.ask("How is the weather in Oslo?")
            taken.append((time.perf_counter() - start) * 1000)
            assert answer.tools[0].output == "Oslo: 4 degrees"
    with open(result, "w") as file:
        file.write(str(statistics.median(taken)))


asyncio.run(main(*sys.argv[1:]))
"""
TURN_ANSWERS = '{"calls": [{"name": "weather", "arguments": {"town": "Oslo"}}]}\n{"text": "It is cold in Oslo."}\n'


def measure_library(bench: BenchRun) -> None:
    """Measure the imports over an empty process and over `import asyncio`,
    and the median of some sessions.
    """
    codeloop = bench.codeloop
    commands = {
        name: codeloop.fill((sys.executable, "-c", code)) for name, code in IMPORT_PROGRAMS.items()
    }
    medians = bench.measure_medians(commands)
    bench.put_own("library-import", medians["import"].wall - medians["empty"].wall)
    # codeloop's names need asyncio, which a program that uses the library imports anyway.
    bench.put_own("library-names", medians["names"].wall - medians["asyncio"].wall)
    result = bench.folder / "library.txt"
    bench.measure_medians({"turn": _make_session_command(codeloop, bench.folder, result)})
    bench.put_own("library-turn", float(result.read_text()))


def _make_session_command(installation: Installation, folder: Path, result: Path) -> Command:
    """Return the command that has the sessions,
    and writes the median time of one (ms) into a file.
    """
    program, script = folder / "library.py", folder / "library.jsonl"
    program.write_text(SESSION_PROGRAM.replace("TURNS", str(TURN_COUNT)))
    script.write_text(TURN_ANSWERS * TURN_COUNT)
    return installation.fill((sys.executable, str(program), str(script), str(result)))
