"""How extensions that are known are started: those that a turn needs,
and no turn waits for the others.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.app.extensions.open_with_extensions import open_with_extensions
from codeloop.kit.limit import Limit
from tests.app.test_extensions import DONE, OPEN, hosts, own
from tests.support.extension_waits import patient_extensions
from tests.support.javascript_extensions import find_host_command
from tests.support.patient_limits import LONG_LIMIT
from tests.support.scripted_project import (
    make_answer,
    make_call,
    make_startup,
    open_scripted_project,
    wait_until,
)

__all__ = ["patient_extensions"]
NOTING = """
from pathlib import Path
from codeloop.extension import hook

Path("loaded-{name}").touch()


@hook("{hook}", policy={policy})
def noting(input, output):
    pass
"""
SLOW_FOLLOWER = """
import time
from pathlib import Path
from codeloop.extension import hook

while Path("slow").exists():
    time.sleep(0.01)


@hook("event")
def follow(event):
    with Path("seen").open("a") as file:
        file.write(event["type"] + "\\n")
"""
WAITING = """
import time
from pathlib import Path
from codeloop.extension import hook

while Path("waits").exists():
    time.sleep(0.01)


@hook("chat.params")
def params(input, output):
    pass
"""
ASKING = """
export const Asking = async ({ client }) => {
  const { data } = await client.session.list()
  return { "chat.params": async (_, output) => { output.options.found = data.length } }
}
"""


@pytest.mark.slow
async def test_a_turn_loads_of_the_known_ones_those_that_it_asks(tmp_path: Path) -> None:
    for name, hook, policy in (
        ("turn", "chat.params", False),
        ("call", "tool.execute.before", False),
        ("guard", "tool.execute.before", True),
    ):
        own(tmp_path, f"plugin/{name}.py", NOTING.format(name=name, hook=hook, policy=policy))
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        marks = [it.work / f"loaded-{name}" for name in ("turn", "call", "guard")]
        assert all(mark.exists() for mark in marks)
    for mark in marks:
        mark.unlink()
    async with open_scripted_project(
        tmp_path, [DONE, make_answer(make_call("read", filePath="x")), DONE], **OPEN
    ) as it:
        await it.prompt()
        await wait_until((it.work / "loaded-guard").exists)
        assert [mark.exists() for mark in marks] == [True, False, True]
        await it.prompt()
        assert (it.work / "loaded-call").exists()


@pytest.mark.slow
async def test_what_follows_events_has_them_from_the_first_to_the_last_however_late_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(tmp_path, "plugin/follower.py", SLOW_FOLLOWER)
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        seen = it.work / "seen"
        slow = it.work / "slow"
        slow.touch()
    seen.unlink(missing_ok=True)
    stop_limit = "codeloop.extend.host.hosts.HOST_STOP"

    def let_it_load() -> None:
        monkeypatch.setattr(stop_limit, LONG_LIMIT)
        slow.unlink()

    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        assert not seen.exists(), "the turn did not wait for it"
        # The time that is left for the last events is over before the follower is loaded,
        # and must not run until then.
        monkeypatch.setattr(stop_limit, Limit("host.stop", 1, "ms", ""))
        asyncio.get_running_loop().call_later(0.3, let_it_load)
    told = seen.read_text().splitlines()
    assert told[0] == "message.updated", "the prompt"
    assert told[-1] == "session.idle"


@pytest.mark.slow
async def test_what_is_known_of_one_does_not_wait_until_another_is_loaded(tmp_path: Path) -> None:
    own(tmp_path, "plugin/waiting.py", WAITING)
    async with open_scripted_project(tmp_path, [DONE], **OPEN) as it:
        await it.prompt()
        waits = it.work / "waits"
    waits.touch()
    own(
        tmp_path,
        "plugin/fresh.py",
        NOTING.format(name="fresh", hook="permission.ask", policy=False),
    )
    project = await open_with_extensions(make_startup(tmp_path / "home", tmp_path / "work", **OPEN))
    try:
        assert not hosts(project).pending
        assert waits.exists()
        waits.unlink()
    finally:
        await project.close()


async def test_one_that_asks_the_api_while_it_is_loaded_is_answered_at_once(tmp_path: Path) -> None:
    find_host_command()  # skips without a runtime
    own(tmp_path, "plugin/asking.js", ASKING)
    (tmp_path / "work").mkdir()
    project = await open_with_extensions(make_startup(tmp_path / "home", tmp_path / "work", **OPEN))
    try:
        assert not hosts(project).pending
    finally:
        await project.close()
