"""Measures how soon `codeloop run` answers Ctrl-C: waiting for the model,
and while a command ignores signals.
"""

import signal
import statistics
import subprocess
import time
from pathlib import Path

from bench.bench_run import BenchRun
from bench.process_runner import MeasurementFailed
from bench.replay_script import write_replay_script
from bench.subjects import CODELOOP, Installation
from codeloop.kit.fault_injection import FAULT_VARIABLE

RUN = (
    CODELOOP,
    "run",
    "--auto",
    "--title",
    "T",
    "--format",
    "json",
    "--replay",
    "{script}",
    "{prompt}",
)
WAIT_FOR_MODEL = "step.start:1:delay"
"""The fault by which a turn waits half a minute before its first request."""
MARKER = "begun"
"""The file that the command makes in the project once it runs."""
STUBBORN_COMMAND = f"trap '' INT TERM HUP; touch {MARKER}; while :; do sleep 0.1; done"
PAUSE_SECONDS = 0.3
"""From then, or from the start of the first step,
until the turn is interrupted: by then it only waits.
"""


def measure_interrupts(bench: BenchRun) -> None:
    """Measure from the signal to the result of a turn that waits,
    and to the note of one that can't end at once.
    """
    installation = bench.codeloop
    answer = write_replay_script(bench.folder / "answer.jsonl")
    stubborn = write_replay_script(
        bench.folder / "stubborn.jsonl",
        [("bash", {"command": STUBBORN_COMMAND, "description": "Runs"})],
    )
    # The first run makes the database and does not count.
    results = [_time_result(installation, answer) for _ in range(bench.rounds + 1)][1:]
    notes = [_time_note(installation, stubborn) for _ in range(bench.rounds)]
    bench.put(installation, "interrupt", statistics.median(results))
    bench.put(installation, "interrupt-note", statistics.median(notes))


def _time_result(installation: Installation, script: Path) -> float:
    """Interrupt a turn that waits for its model; return the time until its result, ms."""
    with _start_turn(installation, script, **{FAULT_VARIABLE: WAIT_FOR_MODEL}) as process:
        assert process.stdout is not None
        if not any("step_start" in line for line in iter(process.stdout.readline, "")):
            raise MeasurementFailed("codeloop run began no step")
        return _time_line(process, '"type":"result"')


def _time_note(installation: Installation, script: Path) -> float:
    """Interrupt a turn whose command ignores signals;
    return the time until the note that it is stopping, ms.
    """
    marker = installation.project / MARKER
    marker.unlink(missing_ok=True)
    with _start_turn(installation, script) as process:
        while not marker.exists():
            if process.poll() is not None:
                raise MeasurementFailed("codeloop run ended before its command began")
            time.sleep(0.02)
        return _time_line(process, "Stopping")


def _start_turn(installation: Installation, script: Path, **environ: str) -> subprocess.Popen[str]:
    command = installation.fill(RUN, script=script)
    return subprocess.Popen(
        list(command.argv),
        cwd=command.cwd,
        env={**command.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _time_line(process: subprocess.Popen[str], text: str) -> float:
    """Interrupt a turn after a pause, and return the time until it prints a line with this text,
    ms.
    """
    assert process.stdout is not None
    time.sleep(PAUSE_SECONDS)
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    if not any(text in line for line in iter(process.stdout.readline, "")):
        raise MeasurementFailed(f"an interrupted codeloop run printed no {text}")
    return (time.perf_counter() - begin) * 1000
