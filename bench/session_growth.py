"""`python -m bench.session_growth`: samples the resources of one process while a
session has thousands of turns.

The session is compacted many times. Memory, descriptors, threads and tasks must not grow with it.
The figures are written as JSON, and a plot as PNG.
It takes minutes, and is not part of `make bench`.
"""

import argparse
import asyncio
import gc
import json
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.plot import Line, draw_plot
from bench.process_stats import read_resident_memory
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.kit.remove_tree import temporary_folder
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
from codeloop.schema.api.session_inputs import PROMPT, Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.message import CacheTokens, Tokens

TURN_COUNT = 2_000
STEP_COUNT = 200
SAMPLE_COUNT = 200
IDLE_SAMPLE_COUNT = 60
CONTEXT_TOKENS = 24_000
LARGE_CONTEXT_TOKENS = 2_000_000
ANSWER_TEXT = (
    "This is what was found there, told at some length so that the conversation grows. " * 10
)


@dataclass
class CountingModel:
    """A model that answers each prompt with `step_count` calls and then a text;
    it counts the tokens of requests.
    """

    step_count: int = 1
    context_tokens: int = CONTEXT_TOKENS
    tokens_sent: int = 0
    """Tokens of all requests so far, estimated."""
    summary_count: int = 0
    calls_made: int = 0
    calls_left: int = 0

    @property
    def info(self) -> ModelInfo:
        """The model's record; its context is small, so that compaction comes often."""
        return ModelInfo(
            provider_id="bench",
            id="m",
            name="M",
            limits=TokenLimits(context=self.context_tokens, output=1_000),
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Answer: a summary when no tools are offered, a call after a prompt,
        text after a result.
        """
        await asyncio.sleep(0)
        size = estimate_tokens(request)
        self.tokens_sent += size
        used = Tokens(input=size, output=200, reasoning=0, cache=CacheTokens(read=0, write=0))
        if not request.tools:
            self.summary_count += 1
            yield TextDelta("NOTE: the work goes on as before. " * 20)
            yield Finished("stop", used)
            return
        if not isinstance(request.messages[-1], ToolModelMessage):
            self.calls_left = self.step_count
        if self.calls_left:
            self.calls_left -= 1
            self.calls_made += 1
            command = json.dumps(
                {"command": f"echo {self.calls_made}; seq 200", "description": "Counts"}
            )
            yield CallStarted(f"c{self.calls_made}", "bash")
            yield CallReady(f"c{self.calls_made}", "bash", command)
            yield Finished("tool-calls", used)
            return
        yield TextDelta(ANSWER_TEXT)
        yield Finished("stop", used)


def estimate_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a request: a quarter of its characters."""
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
class ResourceSample:
    """The resources of this process after `turn` turns. `memory`: resident, MB."""

    turn: int
    seconds: float
    memory: float
    descriptors: int
    threads: int
    tasks: int


@dataclass
class SessionGrowth:
    """The samples of a session, and its totals."""

    samples: list[ResourceSample] = field(default_factory=list[ResourceSample])
    idle_samples: list[ResourceSample] = field(default_factory=list[ResourceSample])
    """Samples after the last turn, while the process is idle; `seconds` count on."""
    compactions: int = 0
    tokens_sent: int = 0

    def compute_slope(self) -> float:
        """Return the growth of memory in the second half, MB for 1,000 turns, by least squares.

        The first half fills caches, so it grows in any case.
        """
        late = self.samples[len(self.samples) // 2 :]
        turns = [each.turn for each in late]
        middle, mean = sum(turns) / len(turns), sum(each.memory for each in late) / len(late)
        spread = sum((turn - middle) ** 2 for turn in turns)
        return (
            sum((s.turn - middle) * (s.memory - mean) for s in late) / spread * 1_000
            if spread
            else 0.0
        )


def take_sample(turn: int, start: float) -> ResourceSample:
    """Sample this process. `start`: when the first turn began, monotonic seconds."""
    return ResourceSample(
        turn=turn,
        seconds=time.monotonic() - start,
        memory=read_resident_memory(os.getpid()),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        tasks=len(asyncio.all_tasks()),
    )


async def measure_growth(folder: Path, turns: int, idle_seconds: float = 0) -> SessionGrowth:
    """Run a session of `turns` turns, with a client that follows its events
    as a user interface does.

    `idle_seconds`: for how long the process is sampled afterwards, without further prompts.
    """
    model = CountingModel()
    project = await open_bench_project(folder, model)
    client = LocalClient(project)
    growth = SessionGrowth()
    following = asyncio.create_task(_follow_events(client))
    try:
        session = await client.call(SESSION_CREATE, CreateSession(title="A day"))
        start = time.monotonic()
        every = max(turns // SAMPLE_COUNT, 1)
        for turn in range(turns + 1):
            if turn % every == 0:
                # Garbage that is not collected yet would look like growth.
                gc.collect()
                growth.samples.append(take_sample(turn, start))
            if turn < turns:
                parts = [TextPartInput(text=f"Go on, part {turn}.")]
                await client.call(PROMPT, Prompt(session_id=session.id, parts=parts))
        end = time.monotonic() + idle_seconds
        while idle_seconds and time.monotonic() < end:
            gc.collect()
            growth.idle_samples.append(take_sample(turns, start))
            await asyncio.sleep(idle_seconds / IDLE_SAMPLE_COUNT)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await project.close()
    growth.compactions, growth.tokens_sent = model.summary_count, model.tokens_sent
    return growth


async def _follow_events(client: LocalClient) -> None:
    """Take every event until the task is cancelled."""
    async for _ in client.follow():
        pass


async def count_sent_tokens(folder: Path, *, compact: bool) -> int:
    """Return the tokens of all requests of one turn of 200 steps, with compaction or without."""
    model = CountingModel(
        step_count=STEP_COUNT, context_tokens=CONTEXT_TOKENS if compact else LARGE_CONTEXT_TOKENS
    )
    project = await open_bench_project(folder, model)
    try:
        client = LocalClient(project)
        session = await client.call(SESSION_CREATE, CreateSession(title="Steps"))
        limits = RunLimits(steps=STEP_COUNT, compact=compact)
        await client.call(
            PROMPT,
            Prompt(session_id=session.id, parts=[TextPartInput(text="Work.")], limits=limits),
        )
    finally:
        await project.close()
    return model.tokens_sent


async def open_bench_project(folder: Path, model: CountingModel) -> Project:
    """Open a project in a new folder, with everything allowed."""
    work = folder / "work"
    work.mkdir(parents=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "CODELOOP_HOME": str(folder / "h"),
    }
    startup = Startup(directory=work, environment=environment, settings={"permission": "allow"})
    return await open_project(startup, SingleModel(model))


def main(argv: Sequence[str]) -> int:
    """Measure, print, and write the figures and the plot."""
    parser = argparse.ArgumentParser(prog="python -m bench.session_growth", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURN_COUNT)
    parser.add_argument(
        "--idle", type=float, default=0, metavar="SECONDS", help="then ask nothing for so long"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(argv)
    with temporary_folder("codeloop-bench-") as folder:
        growth = asyncio.run(measure_growth(folder / "day", options.turns, options.idle))
        sent = {
            "with": asyncio.run(count_sent_tokens(folder / "with", compact=True)),
            "without": asyncio.run(count_sent_tokens(folder / "without", compact=False)),
        }
    print_report(growth, options.turns, sent)
    options.out.mkdir(parents=True, exist_ok=True)
    write_report(growth, options.turns, sent, options.out / "sessions.json")
    draw_samples(growth, options.turns, options.out / "memory.png")
    return 0


def print_report(growth: SessionGrowth, turns: int, sent: Mapping[str, int]) -> None:
    """Print the figures. `sent`: the tokens of all requests of one turn,
    with compaction and without.
    """
    slope = growth.compute_slope()
    last, middle = growth.samples[-1], growth.samples[len(growth.samples) // 2]
    print(f"{turns:,} turns in {last.seconds:.0f} s, compacted {growth.compactions} times")
    print(
        f"memory {middle.memory:.1f} MB half way, {last.memory:.1f} MB at the end: {slope:+.2f} MB/1,000 turns"
    )
    if growth.idle_samples:
        first, final = growth.idle_samples[0], growth.idle_samples[-1]
        print(
            f"idle for {final.seconds - first.seconds:,.0f} s: {first.memory:.1f} MB, then {final.memory:.1f} MB"
        )
        for what in ("descriptors", "threads", "tasks"):
            print(f"  {what}: {sorted({getattr(each, what) for each in growth.idle_samples})}")
    for what in ("descriptors", "threads", "tasks"):
        print(f"{what}: {getattr(middle, what)} half way, {getattr(last, what)} at the end")
    print(
        f"tokens sent in {STEP_COUNT} steps: {sent['with']:,} with compaction, {sent['without']:,} without"
    )


def write_report(growth: SessionGrowth, turns: int, sent: Mapping[str, int], path: Path) -> None:
    """Write the figures and the samples as JSON; `sent` as in `print_report`."""
    report: dict[str, object] = {
        "turns": turns,
        "compactions": growth.compactions,
        "slope_mb_per_1000_turns": growth.compute_slope(),
    }
    rows = [asdict(each) for each in growth.samples]
    report |= {
        "tokens": sent,
        "samples": rows,
        "idle": [asdict(each) for each in growth.idle_samples],
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


def draw_samples(growth: SessionGrowth, turns: int, path: Path) -> None:
    """Draw memory, descriptors, threads and tasks over the turns."""
    lines = [
        Line(
            "resident memory, MB", "#1f5fbf", [(each.turn, each.memory) for each in growth.samples]
        ),
        Line(
            "descriptors",
            "#bf5f1f",
            [(each.turn, float(each.descriptors)) for each in growth.samples],
        ),
        Line("threads", "#3f9f3f", [(each.turn, float(each.threads)) for each in growth.samples]),
        Line("tasks", "#8f3f9f", [(each.turn, float(each.tasks)) for each in growth.samples]),
    ]
    title = f"One session of {turns:,} turns, compacted {growth.compactions} times"
    draw_plot(title, "turns", lines, path)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
