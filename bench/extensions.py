"""What extensions cost: one that is known, a call's way to its host and back, a hook on every event."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import script
from bench.figures import Bench
from bench.measure import Command, run
from bench.subject import Place
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.extend.host.protocol import CallOrigin, CallTool
from codeloop.model.testing.scripted_model import ScriptedModel
from codeloop.schema.live_events import Delta, PartDelta

CALLS, DELTAS, TOGETHER = 1_000, 20_000, 20
TOOL = '''
async def echo(text: str) -> str:
    """Say a text again."""
    return text
'''
HEAVY = """
import argparse, csv, decimal, email.message, http.client, logging, urllib.request, xml.dom.minidom
from codeloop.extension import hook

@hook("{hook}")
def {name}(input, output):
    pass
"""
"""A plugin that imports what takes a while; at which hook it is asked is filled in."""
PLUGINS = 10
FOLLOWER = """
from codeloop.extension import hook

@hook("event")
async def follow(event):
    pass
"""


def extensions(bench: Bench) -> None:
    """Measure a run with a known tool over one without, calls in a row, and deltas with a follower and without."""
    for place in bench.places:
        if place.subject.name == "codeloop":
            _runs(bench, place)
            bench.put(place, "extension-call", asyncio.run(_calls(bench.folder / "extension-call")))
            rounds = [
                asyncio.run(_deltas(bench.folder / f"extension-{number}", followed=True))
                - asyncio.run(_deltas(bench.folder / f"extension-{number}-without", followed=False))
                for number in range(min(bench.rounds, 3))
            ]
            bench.put(place, "extension-events", statistics.median(rounds))


def _runs(bench: Bench, place: Place) -> None:
    plain = place.fill(place.subject.scripted, script=script.write(bench.folder / "extension-answer.jsonl"))
    home = place.home / "with-extensions"
    _write(home, "tool/echo.py", TOOL)
    known = Command(plain.argv, plain.cwd, {**plain.environ, "CODELOOP_HOME": str(home)})
    run(known)  # what it offers is remembered
    ten = place.home / "with-plugins"
    for number in range(PLUGINS):  # three of them are asked in each turn, as of ten published ones
        hook = "chat.params" if number < 3 else "tool.execute.before"
        _write(ten, f"plugin/heavy{number}.py", HEAVY.format(hook=hook, name=f"heavy{number}"))
    plugged = Command(plain.argv, plain.cwd, {**plain.environ, "CODELOOP_HOME": str(ten)})
    run(plugged)
    found = bench.medians({"plain": plain, "known": known, "plugged": plugged})
    bench.put(place, "extension-ten", found["plugged"].wall - found["plain"].wall)
    bench.put(place, "extension-known", found["known"].wall - found["plain"].wall)
    bench.put(place, "extension-known-memory", found["known"].memory - found["plain"].memory)


def _write(home: Path, name: str, text: str) -> None:
    file = home / "config" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def _opened(folder: Path, files: Sequence[tuple[str, str]]) -> Project:
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    for name, text in files:
        _write(home, name, text)
    environment = {"HOME": str(home), "CODELOOP_HOME": str(home), "PATH": "/usr/bin:/bin"}
    project = await open_project(Startup(directory=work, environment=environment), SingleModel(ScriptedModel([])))
    hosts = project.services.extensions.hosts
    if hosts is not None:
        await hosts.ready()
    return project


async def _calls(folder: Path) -> float:
    """Return what a call takes (ms), the median of many."""
    project = await _opened(folder, [("tool/echo.py", TOOL)])
    hosts = project.services.extensions.hosts
    assert hosts is not None
    (tool,) = hosts.extensions
    message = partial(CallTool, extension=tool.name, tool="echo", arguments={"text": "x"}, context=CallOrigin())
    took: list[float] = []
    for _ in range(CALLS):
        start = time.perf_counter()
        await hosts.ask(tool, message)
        took.append((time.perf_counter() - start) * 1000)
    await project.close()
    return statistics.median(took)


async def _deltas(folder: Path, *, followed: bool) -> float:
    """Return what a thousand deltas take until a follower has them (ms)."""
    project = await _opened(folder, [("plugin/follower.py", FOLLOWER)] if followed else [])
    delta = PartDelta(
        properties=Delta(session_id="ses_1", message_id="msg_1", part_id="prt_1", field="text", delta="word ")
    )
    events = project.store.follow()

    async def count() -> None:
        for _ in range(DELTAS):
            await anext(events)

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    start = time.perf_counter()
    for _ in range(DELTAS // TOGETHER):
        for _ in range(TOGETHER):
            project.store.publish_live(delta)
        await asyncio.sleep(0)
    await counting
    took = (time.perf_counter() - start) * 1000
    await project.close()
    return took * 1_000 / DELTAS
