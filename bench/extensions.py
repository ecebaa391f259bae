"""Measures extensions: runs with known ones, calls to their host and back,
and a hook on every event.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.bench_run import BenchRun
from bench.process_runner import Command, run_command
from bench.replay_script import write_replay_script
from bench.subjects import Installation
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.extend.host.protocol import CallOrigin, CallTool
from codeloop.model.testing.replay import ScriptedModel
from codeloop.schema.live_events import Delta, PartDelta

CALL_COUNT, DELTA_COUNT, DELTAS_PER_BATCH = 1_000, 20_000, 20
ECHO_TOOL = '''
async def echo(text: str) -> str:
    """Say a text again."""
    return text
'''
HEAVY_PLUGIN = """
import argparse, csv, decimal, email.message, http.client, logging, urllib.request, xml.dom.minidom
from codeloop.extension import hook

@hook("{hook}")
def {name}(input, output):
    pass
"""
"""A plugin with slow imports; the name of its hook and of its function are filled in."""
PLUGIN_COUNT = 10
FOLLOWER_PLUGIN = """
from codeloop.extension import hook

@hook("event")
async def follow(event):
    pass
"""


def measure_extensions(bench: BenchRun) -> None:
    """Measure runs with extensions over one without, calls in a row,
    and deltas with a follower and without.
    """
    _measure_runs(bench, bench.codeloop)
    bench.put_own("extension-call", asyncio.run(_time_calls(bench.folder / "extension-call")))
    differences: list[float] = []
    for number in range(min(bench.rounds, 3)):
        followed = asyncio.run(_time_deltas(bench.folder / f"extension-{number}", with_hook=True))
        plain = asyncio.run(
            _time_deltas(bench.folder / f"extension-{number}-without", with_hook=False)
        )
        differences.append(followed - plain)
    bench.put_own("extension-events", statistics.median(differences))


def _measure_runs(bench: BenchRun, installation: Installation) -> None:
    script = write_replay_script(bench.folder / "extension-answer.jsonl")
    plain = installation.fill(installation.subject.scripted, script=script)
    home = installation.home / "with-extensions"
    _write_config(home, "tool/echo.py", ECHO_TOOL)
    known = Command(plain.argv, plain.cwd, {**plain.environ, "CODELOOP_HOME": str(home)})
    # codeloop asks an extension once for its tools and hooks,
    # and keeps the answer: the first run is the slow one.
    run_command(known)
    ten = installation.home / "with-plugins"
    # A hook on `chat.params` runs in each turn. Of ten published plugins,
    # about three have such a hook.
    for number in range(PLUGIN_COUNT):
        hook = "chat.params" if number < 3 else "tool.execute.before"
        _write_config(
            ten, f"plugin/heavy{number}.py", HEAVY_PLUGIN.format(hook=hook, name=f"heavy{number}")
        )
    plugged = Command(plain.argv, plain.cwd, {**plain.environ, "CODELOOP_HOME": str(ten)})
    run_command(plugged)
    medians = bench.measure_medians({"plain": plain, "known": known, "plugged": plugged})
    bench.put_own("extension-ten", medians["plugged"].wall - medians["plain"].wall)
    bench.put_own("extension-known", medians["known"].wall - medians["plain"].wall)
    bench.put_own("extension-known-memory", medians["known"].memory - medians["plain"].memory)


def _write_config(home: Path, name: str, text: str) -> None:
    file = home / "config" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def _open_project(folder: Path, files: Sequence[tuple[str, str]]) -> Project:
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    for name, text in files:
        _write_config(home, name, text)
    environment = {"HOME": str(home), "CODELOOP_HOME": str(home), "PATH": "/usr/bin:/bin"}
    project = await open_project(
        Startup(directory=work, environment=environment), SingleModel(ScriptedModel([]))
    )
    hosts = project.services.extensions.hosts
    if hosts is not None:
        await hosts.wait_for_offers()
    return project


async def _time_calls(folder: Path) -> float:
    """Return the median time of a call, ms."""
    project = await _open_project(folder, [("tool/echo.py", ECHO_TOOL)])
    hosts = project.services.extensions.hosts
    assert hosts is not None
    (tool,) = hosts.extensions
    message = partial(
        CallTool, extension=tool.name, tool="echo", arguments={"text": "x"}, context=CallOrigin()
    )
    times: list[float] = []
    for _ in range(CALL_COUNT):
        start = time.perf_counter()
        await hosts.ask(tool, message)
        times.append((time.perf_counter() - start) * 1000)
    await project.close()
    return statistics.median(times)


async def _time_deltas(folder: Path, *, with_hook: bool) -> float:
    """Return the time until a client has all deltas, ms for a thousand of them."""
    project = await _open_project(
        folder, [("plugin/follower.py", FOLLOWER_PLUGIN)] if with_hook else []
    )
    delta = PartDelta(
        properties=Delta(
            session_id="ses_1", message_id="msg_1", part_id="prt_1", field="text", delta="word "
        )
    )
    events = project.store.follow()

    async def count() -> None:
        for _ in range(DELTA_COUNT):
            await anext(events)

    counting = asyncio.create_task(count())
    # Lets it follow before the first delta is published.
    await asyncio.sleep(0)
    start = time.perf_counter()
    for _ in range(DELTA_COUNT // DELTAS_PER_BATCH):
        for _ in range(DELTAS_PER_BATCH):
            project.store.publish_live(delta)
        # Lets the client, and what hands events to the extension, take the batch.
        await asyncio.sleep(0)
    await counting
    took = (time.perf_counter() - start) * 1000
    await project.close()
    return took * 1_000 / DELTA_COUNT
