"""Tests of keys in the system's keyring: storing, reading, removing, and errors of backends."""

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import keyring
import msgspec
import pytest
from keyring.backends.fail import Keyring as NoBackend

from codeloop.model.credentials.store import ApiKey, Credentials, KeyringKey
from codeloop.model.credentials.system_keyring import KeyringSigner
from codeloop.model.errors import ModelUnavailable, WrongKeyOrigin
from tests.support.answers import Answer
from tests.support.file_keyring import FileKeyring
from tests.support.model_server import ModelServer
from tests.support.models import API_KEY, make_endpoint

URL = "https://api.acme.example/v1"
ORIGIN = "https://api.acme.example"


@pytest.fixture(autouse=True)
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    path = tmp_path / "ring.json"
    monkeypatch.setenv("FILE_KEYRING", str(path))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())
    yield path
    keyring.set_keyring(before)


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return Credentials(tmp_path / "data" / "auth.json")


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def held(ring: Path) -> dict[str, str]:
    return msgspec.json.decode(ring.read_bytes())


def signer(credentials: Credentials) -> KeyringSigner:
    return KeyringSigner("acme", ORIGIN, bearer, credentials.remember_key)


def test_the_file_names_the_origin_and_no_key(credentials: Credentials, ring: Path) -> None:
    credentials.store_key("acme", API_KEY, URL, in_keyring=True)
    assert held(ring) == {f"codeloop/acme {ORIGIN}": API_KEY}
    assert msgspec.json.decode(credentials.path.read_bytes()) == {
        "acme": {"type": "keyring", "origin": ORIGIN}
    }
    assert credentials.find_key("acme", URL) == KeyringKey(ORIGIN)
    with pytest.raises(WrongKeyOrigin):
        credentials.find_key("acme", "https://evil.example/v1")


def test_a_new_key_goes_where_the_old_one_is_unless_said(
    credentials: Credentials, ring: Path
) -> None:
    credentials.store_key("acme", "old", URL, in_keyring=True)
    credentials.store_key("acme", API_KEY, "https://eu.acme.example")
    assert held(ring) == {"codeloop/acme https://eu.acme.example": API_KEY}
    credentials.store_key("acme", API_KEY, URL, in_keyring=False)
    assert held(ring) == {}
    assert credentials.read_entries() == {"acme": ApiKey(API_KEY, ORIGIN)}


@pytest.mark.parametrize("replace", [
    lambda credentials: credentials.remove_entry("acme"),
    lambda credentials: credentials.store_sign_in("acme", {"access": "x"}),
])  # fmt: skip
def test_what_is_removed_or_replaced_leaves_the_keyring(
    credentials: Credentials, ring: Path, replace: Callable[[Credentials], object]
) -> None:
    credentials.store_key("acme", API_KEY, URL, in_keyring=True)
    replace(credentials)
    assert held(ring) == {}
    assert credentials.read_entries() == {}


async def test_a_request_reads_the_key_once_and_takes_it_for_a_secret(
    credentials: Credentials, ring: Path, openai: Any, asking: Any
) -> None:
    credentials.store_key("acme", API_KEY, URL, in_keyring=True)
    reader = Credentials(credentials.path)
    async with ModelServer([Answer(text="ok")], key=API_KEY) as server:
        given: dict[str, Any] = {"key": None, "signer": signer(reader)}
        model = openai(server, **given)
        assert make_endpoint(server, **given).key is None
        assert reader.list_secrets() == set()
        assert (await asking(model)).text == "ok"
        ring.with_name("ring.json.lock").touch()
        assert (await asking(model)).text == "ok"
    assert reader.list_secrets() == {API_KEY}


async def test_a_refused_key_is_not_shown(
    credentials: Credentials, openai: Any, asking: Any
) -> None:
    credentials.store_key("acme", API_KEY, URL, in_keyring=True)
    refusal = Answer(status=401, body=f'{{"error": {{"message": "wrong key {API_KEY}"}}}}')
    async with ModelServer([refusal]) as server:
        got = await asking(openai(server, key=None, signer=signer(credentials)))
    assert "[hidden]" in str(got.end.error)
    assert API_KEY not in str(got.end.error)


async def test_a_locked_keyring_is_named_and_may_be_unlocked(
    credentials: Credentials, ring: Path
) -> None:
    credentials.store_key("acme", API_KEY, URL, in_keyring=True)
    lock = ring.with_name("ring.json.lock")
    lock.touch()
    keys = signer(credentials)
    with pytest.raises(ModelUnavailable, match=r"it is locked .* Unlock it"):
        await keys.sign("", {}, b"")
    with pytest.raises(ModelUnavailable, match="it is locked"):
        credentials.remove_entry("acme")
    assert "acme" in credentials.read_entries()
    lock.unlink()
    assert (
        await asyncio.gather(*(keys.sign("", {}, b"") for _ in range(3))) == [bearer(API_KEY)] * 3
    )


async def test_a_key_that_is_gone_is_to_be_stored_again(
    credentials: Credentials, ring: Path
) -> None:
    credentials.store_key("acme", API_KEY, URL, in_keyring=True)
    ring.unlink()
    with pytest.raises(
        ModelUnavailable, match=r"has no key of acme .* `codeloop auth login acme --keyring`"
    ):
        await signer(credentials).sign("", {}, b"")
    assert credentials.remove_entry("acme")


def test_without_a_keyring_nothing_is_stored_there_but_in_the_file(
    credentials: Credentials,
) -> None:
    credentials.store_key("acme", "old", URL, in_keyring=True)
    keyring.set_keyring(NoBackend())
    with pytest.raises(ModelUnavailable, match="--no-keyring"):
        credentials.store_key("acme", API_KEY, URL)
    assert credentials.read_entries() == {"acme": KeyringKey(ORIGIN)}
    credentials.store_key("acme", API_KEY, URL, in_keyring=False)
    assert credentials.read_entries() == {"acme": ApiKey(API_KEY, ORIGIN)}
