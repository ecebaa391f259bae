"""The typed client: what the table holds, over whichever client."""

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import asdict

from codeloop.client import api
from codeloop.client.api import app, file, part, path, session
from codeloop.model.answers import Answer
from codeloop.schema.errors import OperationError
from codeloop.schema.files import OfOnePath
from codeloop.schema.message import AssistantMessage, Session
from codeloop.schema.operation import OPERATIONS
from codeloop.schema.part import TextPart
from codeloop.schema.prompts import Prompt, TextInput
from codeloop.schema.sessions import (
    CreateSession,
    ListMessages,
    ListSessions,
    OfOnePart,
    OfOneSession,
    UpdatePart,
    UpdateSession,
)
from codeloop.schema.wire import replace
from tests.agent.harness import rig

ROOT = Path(__file__).resolve().parents[2]


def modules() -> list[ModuleType]:
    return [import_module(f"{api.__name__}.{found.name}") for found in pkgutil.iter_modules(api.__path__)]


def test_it_is_what_the_table_gives(tmp_path: Path) -> None:
    """After a change of the table: python scripts/generate_client.py."""
    made = tmp_path / "api"
    subprocess.run([sys.executable, "scripts/generate_client.py", "--into", str(made)], cwd=ROOT, check=True)
    folder = Path(api.__path__[0])
    assert {each.name: each.read_text() for each in made.glob("*.py")} == {
        each.name: each.read_text() for each in folder.glob("*.py")
    }


def test_every_operation_has_one_function() -> None:
    lines = [
        (inspect.getdoc(each) or "").partition("\n")[0]
        for module in modules()
        for _, each in inspect.getmembers(module, inspect.iscoroutinefunction)
    ]
    assert sorted(lines) == sorted(f"{row.method} {row.path}." for row in OPERATIONS)


async def test_a_session_is_made_prompted_changed_and_deleted(tmp_path: Path) -> None:
    async with rig(tmp_path, [Answer(text="Hello.")]) as it:
        made = await session.create(it.client, CreateSession(title="mine"))
        assert isinstance(made, Session)
        this = OfOneSession(session_id=made.id)
        answer = await session.prompt(it.client, Prompt(session_id=made.id, parts=[TextInput(text="hi")]))
        assert isinstance(answer.info, AssistantMessage)
        messages = await session.messages(it.client, ListMessages(session_id=made.id, limit=1))
        (text,) = [each for each in messages[-1].parts if isinstance(each, TextPart)]
        assert text.text == "Hello."
        changed = replace(text, text="Hello!")
        where = OfOnePart(session_id=made.id, message_id=text.message_id, part_id=text.id)
        assert await part.update(it.client, UpdatePart(**asdict(where), part=changed)) == changed
        assert await part.delete(it.client, where) is True
        assert (await session.update(it.client, UpdateSession(session_id=made.id, title="ours"))).title == "ours"
        assert await session.delete(it.client, this) is True
        with pytest.raises(OperationError) as refused:
            await session.get(it.client, this)
        assert refused.value.kind == "NotFoundError"


async def test_arguments_that_may_all_be_left_out_may_be_left_out_whole(tmp_path: Path) -> None:
    async with rig(tmp_path, []) as it:
        await session.create(it.client)
        assert len(await session.list_(it.client)) == 2
        assert len(await session.list_(it.client, ListSessions(limit=1))) == 1
        assert "build" in [agent.name for agent in await app.agents(it.client)]


async def test_what_a_function_gives_is_of_the_type_that_it_names(tmp_path: Path) -> None:
    async with rig(tmp_path, []) as it:
        place = await path.get(it.client)
        assert Path(place.directory) == it.work
        (it.work / "a.txt").write_text("text")
        assert (await file.read(it.client, OfOnePath(path="a.txt"))).content == "text"
