"""A model server that plays a scenario, as a process of its own that logs the times
and bodies of its requests.

It is a process of its own so that its work does not slow down what is measured, or count as that.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from bench.protocols.chat_completions import stream_events
from bench.recorded_requests import RecordedRequest
from bench.trajectories import TRAJECTORIES, make_answers
from codeloop.kit.remove_tree import remove_tree
from tests.support.answers import Answer, AnswerScript, Call
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import STEP_PATTERN, AnswerChooser, ModelServer, choose_by_step

START_SECONDS = 10.0
"""Seconds that the process may take to listen."""
SCENARIO_FORMS = "answer-1, steps-N, deltas-N, drip-N, paced-N or trajectory-NAME"
"""The scenarios as the process takes them on its command line."""
DELTA_BYTES = 200
"""About the size of a delta's event; a drip writes so many bytes at a time."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The answers of the model in one session.

    `answer`: one word. `steps`: `count` calls of bash in as many answers, then a word. `deltas`: a
    text in `count` deltas, as quickly as the socket takes them. `drip`: the same, each delta
    written by itself. `paced`: the same, at about 2,000 deltas a second. `trajectory`: the answers
    of the recorded trajectory `name`.
    """

    kind: Literal["answer", "steps", "deltas", "drip", "paced", "trajectory"]
    count: int = 1
    name: str = ""

    def __str__(self) -> str:
        """Return the scenario as the process takes it on its command line."""
        return f"{self.kind}-{self.name or self.count}"

    def list_answers(self) -> tuple[Answer, ...]:
        """Return the answers of one session, in order."""
        if self.kind == "trajectory":
            return tuple(make_answers(self.name))
        if self.kind in {"deltas", "drip"}:
            pieces = DELTA_BYTES if self.kind == "drip" else 0
            return (Answer(text="word " * self.count, deltas=self.count, pieces=pieces),)
        if self.kind == "paced":
            return (Answer(text="word " * self.count, deltas=self.count, delay=0.0005),)
        calls = range(1, self.count + 1) if self.kind == "steps" else ()
        return (*(_make_step(number) for number in calls), Answer(text="Done."))


class ScenarioServer:
    """Runs the process within a `with` block, for any number of sessions; `url`: the base URL."""

    def __init__(self, scenario: Scenario, *, keep_bodies: bool = False) -> None:
        self._scenario = scenario
        self._keep_bodies = keep_bodies
        self._folder = Path(tempfile.mkdtemp(prefix="codeloop-bench-server-"))
        self._log = self._folder / "requests"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        """Start the process and wait until it listens. Raises OSError."""
        argv = [sys.executable, "-m", "bench.scenario_server", str(self._scenario), str(self._log)]
        process = subprocess.Popen(
            argv + ["--bodies"] * self._keep_bodies,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[1],
        )
        self._process = process
        self.url = process.stdout.readline().decode().strip() if process.stdout else ""
        if not self.url:
            process.wait(START_SECONDS)
            raise OSError(
                f"the model server of the scenario {self._scenario} did not start; its reason is above"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout:
                self._process.stdout.close()
        remove_tree(self._folder)

    def read_requests(self) -> list[RecordedRequest]:
        """Return the requests so far that offer tools: those of an agent's loop,
        not those for titles.
        """
        return list(_read_log(self._log.read_bytes())) if self._log.exists() else []


def _make_step(number: int) -> Answer:
    # Each command differs: agents stop and ask when calls repeat.
    arguments = json.dumps(
        {"command": f"echo step {number}", "description": "Says which step this is"}
    )
    return Answer(calls=(Call("bash", arguments, f"call_{number}"),))


def _choose_by_prompt(answers: tuple[Answer, ...]) -> AnswerChooser:
    """Make a chooser that counts the answers since the last prompt,
    so that each prompt begins the scenario anew.
    """

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            return AnswerScript(answers).without_tools
        prompt = max(received.body.rfind(b'"role":"user"'), 0)
        return answers[min(len(STEP_PATTERN.findall(received.body, prompt)), len(answers) - 1)]

    return choose


def _render_events(answer: Answer) -> Answer:
    """Return the answer with its chat completion events rendered,
    so that the server sends them without more work.
    """
    events = (
        event.decode().removeprefix("data: ").rstrip("\n")
        for event in stream_events(answer, "bench")
    )
    return replace(answer, events=tuple(events))


async def _serve(scenario: Scenario, log: Path, *, bodies: bool) -> None:
    plain = choose_by_step(AnswerScript(scenario.list_answers()))
    rendered = _choose_by_prompt(
        tuple(_render_events(answer) for answer in scenario.list_answers())
    )

    with log.open("ab", buffering=0) as file:

        def choose(received: ReceivedRequest) -> Answer:
            at = time.perf_counter()
            answer = (rendered if received.path.endswith("/chat/completions") else plain)(received)
            if b'"tools"' in received.body:
                body = received.body if bodies else b""
                file.write(f"{at} {time.perf_counter()} {len(body)}\n".encode() + body)
            return answer

        async with ModelServer(choose, validate=False, record=False) as server:
            print(server.url, flush=True)
            await server.serve_forever()


def _read_log(data: bytes) -> Iterator[RecordedRequest]:
    file = BytesIO(data)
    while head := file.readline().split():
        yield RecordedRequest(float(head[0]), float(head[1]), file.read(int(head[2])))


def _parse_scenario(text: str) -> Scenario:
    kind, _, detail = text.partition("-")
    match kind:
        case "trajectory" if detail in TRAJECTORIES:
            return Scenario(kind, name=detail)
        case "answer" | "steps" | "deltas" | "drip" | "paced" if detail.isdigit():
            return Scenario(kind, int(detail))
        case _:
            raise argparse.ArgumentTypeError(f"{text} is not a scenario: {SCENARIO_FORMS}")


def main() -> None:
    """Serve until the process is killed; the first line printed is the base URL."""
    parser = argparse.ArgumentParser(prog="python -m bench.scenario_server", description=__doc__)
    parser.add_argument("scenario", type=_parse_scenario, help=SCENARIO_FORMS)
    parser.add_argument("log", type=Path, help="the file to which requests are appended")
    parser.add_argument("--bodies", action="store_true", help="log their bodies, too")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options.scenario, options.log, bodies=options.bodies))


if __name__ == "__main__":
    main()
