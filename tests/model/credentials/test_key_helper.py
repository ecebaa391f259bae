"""Tests of `apiKeyHelper`: the headers of the key, how long it is used,
and errors of the program.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.credentials.key_helper import KeyHelper, parse_helper_command
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.errors import ProviderAuthError
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import API_KEY, make_endpoint


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def helper(line: str, ttl: float = 60.0) -> KeyHelper:
    return KeyHelper("acme", parse_helper_command("acme", line), bearer, ttl)


async def test_requests_at_once_run_the_program_once(tmp_path: Path) -> None:
    keys = helper(f"echo x >> {tmp_path}/runs; echo {API_KEY}")
    signed = await asyncio.gather(*(keys.sign("", {}, b"") for _ in range(3)))
    assert signed == [bearer(API_KEY)] * 3
    assert (tmp_path / "runs").read_text() == "x\n"


async def test_an_old_key_is_asked_for_again(tmp_path: Path) -> None:
    keys = helper(f"echo x >> {tmp_path}/runs; wc -l < {tmp_path}/runs", ttl=0.0)
    assert await keys.sign("", {}, b"") != await keys.sign("", {}, b"")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("echo sign in first >&2; exit 3", "ended with 3 (sign in first)"),
        ("true", "printed no key"),
        ("echo two words", "printed no key"),
    ],
)
async def test_without_a_key_the_reason_is_told(line: str, says: str) -> None:
    with pytest.raises(ModelUnavailable, match=r"provider\.acme\.options\.apiKeyHelper") as failed:
        await helper(line).sign("", {}, b"")
    assert says in str(failed.value)


async def test_a_program_that_is_not_there_is_named() -> None:
    keys = KeyHelper("acme", parse_helper_command("acme", ["/no/such/program"]), bearer)
    with pytest.raises(ModelUnavailable, match="/no/such/program"):
        await keys.sign("", {}, b"")


@pytest.mark.parametrize("value", ["", " ", [], [1], {"a": 1}])
def test_what_is_no_command_is_refused(value: object) -> None:
    with pytest.raises(ModelUnavailable, match="must be a command"):
        parse_helper_command("acme", value)


async def test_a_request_carries_the_key_or_is_not_sent(openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")], key=API_KEY) as server:
        given: dict[str, Any] = {"key": None}
        assert make_endpoint(server, **given).key is None
        assert (
            await asking(openai(server, **given, signer=helper(f"echo {API_KEY}")))
        ).text == "ok"
        got = await asking(openai(server, **given, signer=helper("exit 1")))
        assert len(server.requests) == 1
    assert isinstance(got.end.error, ProviderAuthError)
