"""`python -m bench.sessions`: a scripted working day in one process, compacted many times; what it holds on to.

Samples resident memory, descriptors, threads and tasks while it runs; writes figures (JSON) and a plot (PNG).
"""

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.plot import Line, plot
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.model.chat import (
    CallPiece,
    CallReady,
    CallStarted,
    Finished,
    ImagePiece,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    ResultPiece,
    TextDelta,
    TokenLimits,
    ToolModelMessage,
)
from codeloop.schema.api.session_inputs import Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import CreateSession
from codeloop.schema.event import MessageUpdated
from codeloop.schema.message import AssistantMessage, CacheTokens, Tokens
from codeloop.schema.operation import PROMPT, SESSION_CREATE

TURNS = 2_000
STEPS = 200
SAMPLES = 200
IDLE_SAMPLES = 60
CONTEXT = 24_000
LARGE = 2_000_000
SAID = "This is what was found there, told at some length so that the conversation grows. " * 10


@dataclass
class Talker:
    """A model that makes one call for each prompt, or `steps` of them, and then says something; it counts tokens."""

    steps: int = 1
    context: int = CONTEXT
    sent: int = 0
    """Tokens of all requests so far: characters / 4."""
    summaries: int = 0
    made: int = 0
    left: int = 0

    @property
    def info(self) -> ModelInfo:
        """A model with a small context."""
        return ModelInfo(provider_id="bench", id="m", name="M", limits=TokenLimits(context=self.context, output=1_000))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Answer: a summary when no tools are offered, a call after a prompt, text after a result."""
        await asyncio.sleep(0)
        size = tokens_of(request)
        self.sent += size
        used = Tokens(input=size, output=200, reasoning=0, cache=CacheTokens(read=0, write=0))
        if not request.tools:
            self.summaries += 1
            yield TextDelta("NOTE: the work goes on as before. " * 20)
            yield Finished("stop", used)
            return
        if not isinstance(request.messages[-1], ToolModelMessage):
            self.left = self.steps
        if self.left:
            self.left -= 1
            self.made += 1
            command = json.dumps({"command": f"echo {self.made}; seq 200", "description": "Counts"})
            yield CallStarted(f"c{self.made}", "bash")
            yield CallReady(f"c{self.made}", "bash", command)
            yield Finished("tool-calls", used)
            return
        yield TextDelta(SAID)
        yield Finished("stop", used)


def tokens_of(request: ModelRequest) -> int:
    """Return about how many tokens the conversation of a request takes."""
    size = len(request.system)
    for turn in request.messages:
        for piece in turn.content:
            match piece:
                case CallPiece(arguments=text) | ResultPiece(output=text):
                    size += len(text)
                case ImagePiece():
                    pass
                case _:
                    size += len(piece.text)
    return size // 4


@dataclass(frozen=True)
class Sample:
    """What the process holds after `turn` turns. `memory`: resident, MB."""

    turn: int
    seconds: float
    memory: float
    descriptors: int
    threads: int
    tasks: int


@dataclass
class Day:
    """What was measured."""

    samples: list[Sample] = field(default_factory=list[Sample])
    idle: list[Sample] = field(default_factory=list[Sample])
    """What the process held afterwards, while nothing was asked of it; `seconds` count on."""
    compactions: int = 0
    sent: int = 0

    def slope(self) -> float:
        """Return how much memory grows in the second half, in MB per 1,000 turns: least squares."""
        late = self.samples[len(self.samples) // 2 :]
        turns = [sample.turn for sample in late]
        middle, mean = sum(turns) / len(turns), sum(sample.memory for sample in late) / len(late)
        spread = sum((turn - middle) ** 2 for turn in turns)
        return sum((s.turn - middle) * (s.memory - mean) for s in late) / spread * 1_000 if spread else 0.0


def sample(turn: int, start: float) -> Sample:
    """Look at this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Sample(
        turn=turn,
        seconds=time.monotonic() - start,
        memory=pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        tasks=len(asyncio.all_tasks()),
    )


async def day(folder: Path, turns: int, idle: float = 0) -> Day:
    """Have `turns` turns in one session, a follower beside it as a user interface is; return what was seen.

    `idle`: seconds in which nothing is asked afterwards.
    """
    talker = Talker()
    project = await opened(folder, talker)
    client = LocalClient(project)
    found = Day()
    watching = asyncio.create_task(_watch(client))
    try:
        session = await client.call(SESSION_CREATE, CreateSession(title="A day"))
        start = time.monotonic()
        every = max(turns // SAMPLES, 1)
        for turn in range(turns + 1):
            if turn % every == 0:
                gc.collect()
                found.samples.append(sample(turn, start))
            await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text=f"Go on, part {turn}.")]))
        end = time.monotonic() + idle
        while idle and time.monotonic() < end:
            gc.collect()
            found.idle.append(sample(turns, start))
            await asyncio.sleep(idle / IDLE_SAMPLES)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await project.close()
    found.compactions, found.sent = talker.summaries, talker.sent
    return found


async def _watch(client: LocalClient) -> int:
    steps = 0
    async for stamped in client.follow():
        match stamped.event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                steps += 1
            case _:
                pass
    return steps


async def tokens_sent(folder: Path, *, compact: bool) -> int:
    """Return the tokens of all requests of one turn of 200 steps."""
    talker = Talker(steps=STEPS, context=CONTEXT if compact else LARGE)
    project = await opened(folder, talker)
    try:
        client = LocalClient(project)
        session = await client.call(SESSION_CREATE, CreateSession(title="Steps"))
        limits = RunLimits(steps=STEPS, compact=compact)
        await client.call(PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text="Work.")], limits=limits))
    finally:
        await project.close()
    return talker.sent


async def opened(folder: Path, talker: Talker) -> Project:
    """Open a project in a new folder."""
    work = folder / "work"
    work.mkdir(parents=True)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "CODELOOP_HOME": str(folder / "h")}
    startup = Startup(directory=work, environment=environment, settings={"permission": "allow"})
    return await open_project(startup, SingleModel(talker))


def main(argv: Sequence[str]) -> int:
    """Measure, print, and write the figures and the plot."""
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--idle", type=float, default=0, metavar="SECONDS", help="then ask nothing for so long")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="codeloop-bench-", ignore_cleanup_errors=True) as name:
        found = asyncio.run(day(Path(name) / "day", options.messages, options.idle))
        sent = {
            "with": asyncio.run(tokens_sent(Path(name) / "with", compact=True)),
            "without": asyncio.run(tokens_sent(Path(name) / "without", compact=False)),
        }
    last, middle = found.samples[-1], found.samples[len(found.samples) // 2]
    print(f"{options.turns:,} turns in {last.seconds:.0f} s, compacted {found.compactions} times")
    print(
        f"memory {middle.memory:.1f} MB half way, {last.memory:.1f} MB at the end: {found.slope():+.2f} MB/1,000 turns"
    )
    if found.idle:
        first, final = found.idle[0], found.idle[-1]
        print(f"idle for {final.seconds - first.seconds:,.0f} s: {first.memory:.1f} MB, then {final.memory:.1f} MB")
        for what in ("descriptors", "threads", "tasks"):
            print(f"  {what}: {sorted({getattr(each, what) for each in found.idle})}")
    for what in ("descriptors", "threads", "tasks"):
        print(f"{what}: {getattr(middle, what)} half way, {getattr(last, what)} at the end")
    print(f"tokens sent in {STEPS} steps: {sent['with']:,} with compaction, {sent['without']:,} without")
    options.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, object] = {
        "turns": options.messages,
        "compactions": found.compactions,
        "slope_mb_per_1000_turns": found.slope(),
    }
    rows = [asdict(each) for each in found.samples]
    report |= {"tokens": sent, "samples": rows, "idle": [asdict(each) for each in found.idle]}
    (options.out / "sessions.json").write_text(json.dumps(report, indent=1) + "\n")
    picture(found, options.messages, options.out / "memory.png")
    return 0


def picture(found: Day, turns: int, path: Path) -> None:
    """Draw memory, descriptors, threads and tasks over the turns."""
    lines = [
        Line("resident memory, MB", "#1f5fbf", [(each.turn, each.memory) for each in found.samples]),
        Line("descriptors", "#bf5f1f", [(each.turn, float(each.descriptors)) for each in found.samples]),
        Line("threads", "#3f9f3f", [(each.turn, float(each.threads)) for each in found.samples]),
        Line("tasks", "#8f3f9f", [(each.turn, float(each.tasks)) for each in found.samples]),
    ]
    title = f"One session of {turns:,} turns, compacted {found.compactions} times"
    plot(title, "turns", lines, path)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
