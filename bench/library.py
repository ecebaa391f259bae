"""The library: what `import codeloop` takes, and a session with one call of a function, in a process of its own."""

import sys
from pathlib import Path

from bench.figures import Bench
from bench.measure import Command
from bench.subject import Place

TURNS = 30
IMPORTS = {
    "empty": "pass",
    "import": "import codeloop",
    "asyncio": "import asyncio",
    "names": "import asyncio, codeloop; codeloop.open, codeloop.AgentSession, codeloop.Answer, codeloop.TurnFailed",
}
PROGRAM = """
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
ANSWERS = '{"calls": [{"name": "weather", "arguments": {"town": "Oslo"}}]}\n{"text": "It is cold in Oslo."}\n'


def library(bench: Bench) -> None:
    """Measure the imports against bare ones, and the median of some sessions."""
    for place in bench.places:
        if place.subject.name != "codeloop":
            continue
        found = bench.medians({name: place.fill((sys.executable, "-c", code)) for name, code in IMPORTS.items()})
        bench.put(place, "library-import", found["import"].wall - found["empty"].wall)
        bench.put(place, "library-names", found["names"].wall - found["asyncio"].wall)
        result = bench.folder / "library.txt"
        bench.medians({"turn": _turns(place, bench.folder, result)})
        bench.put(place, "library-turn", float(result.read_text()))


def _turns(place: Place, folder: Path, result: Path) -> Command:
    """Return the program that holds the sessions, and writes what one of them takes."""
    program, script = folder / "library.py", folder / "library.jsonl"
    program.write_text(PROGRAM.replace("TURNS", str(TURNS)))
    script.write_text(ANSWERS * TURNS)
    return place.fill((sys.executable, str(program), str(script), str(result)))
