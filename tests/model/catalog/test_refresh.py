"""Tests of fetching the catalog: at most once a day, checked, stored whole;
it never decides where a key is sent.
"""

import asyncio
import os
import time
from pathlib import Path

import msgspec
import pytest

from codeloop.app.project import open_project
from codeloop.model.catalog.catalog import FETCHED_FILE_NAME, Catalog
from codeloop.model.catalog.packer import pack_catalog, parse_source
from codeloop.model.catalog.refresh import (
    RefreshFailed,
    is_refresh_due,
    refresh_catalog,
    refresh_catalog_if_due,
)
from codeloop.schema.wire import JSON, replace
from tests.model.local_server import http, serving
from tests.support.scripted_project import make_startup

MODEL = {"id": "m", "name": "M", "tool_call": True}


def document(**providers: JSON) -> bytes:
    base: JSON = {
        "name": "P",
        "env": ["P_KEY"],
        "api": "https://p.example/v1",
        "models": {"m": MODEL},
    }
    return msgspec.json.encode(
        {name: {**base, "id": name, **row} for name, row in providers.items()}
    )


@pytest.fixture
def shipped(tmp_path: Path) -> Catalog:
    path = tmp_path / "shipped"
    path.write_bytes(pack_catalog(parse_source(document(p={}, q={})), "2026-01-01"))
    return Catalog(bundled=path)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


async def test_a_good_catalog_is_stored_and_is_the_newest(cache: Path, shipped: Catalog) -> None:
    newer = {**MODEL, "id": "newer"}
    async with serving(
        http(document(p={"models": {"newer": newer}}, q={}, fresh={"env": ["FRESH_KEY"]}))
    ) as (url, _):
        count = await refresh_catalog(cache, {"CODELOOP_MODELS_URL": url}, shipped)
    assert count == 3
    catalog = Catalog(cache, bundled=shipped.path)
    assert catalog.path == cache / FETCHED_FILE_NAME
    assert catalog.find_model("p", "newer") is not None
    assert catalog.find_model("fresh", "m") is not None
    assert not is_refresh_due(cache, {})
    assert sorted(path.name for path in cache.iterdir()) == ["models.bin", "models.bin.tried"]


async def test_what_is_fetched_can_not_move_a_key_to_another_place(
    cache: Path, shipped: Catalog
) -> None:
    evil = "https://evil.example/v1"
    answer = document(
        p={"api": evil, "env": ["HOME"], "npm": "@evil/npm"}, q={}, thief={"api": evil, "env": ["P_KEY", "T_KEY"]},
        plain={"api": "http://plain.example"}, tricky={"api": "https://p.example@evil.example"},
        template={"api": "https://evil.example/${P_KEY}"},
    )  # fmt: skip
    async with serving(http(answer)) as (url, _):
        await refresh_catalog(cache, {"CODELOOP_MODELS_URL": url}, shipped)
    catalog = Catalog(cache, bundled=shipped.path)
    row, thief = catalog.find_row("p"), catalog.find_row("thief")
    assert row is not None
    assert thief is not None
    assert (row.api, row.env, row.npm) == (
        "https://p.example/v1",
        ("P_KEY",),
        "@ai-sdk/openai-compatible",
    )
    assert thief.env == ("T_KEY",)
    assert {catalog.find_row(name) for name in ("plain", "tricky", "template")} == {None}


@pytest.mark.parametrize(
    "answer",
    [
        http(b"<html>captive portal</html>"),
        http(b"{}"),
        http(b'{"p": {"id": "p"}}'),
        http(document(other={"env": ["O_KEY"]})),
        http(document(p={}, q={}), "500 Internal Server Error"),
        http(document(p={}, q={}), "302 Found"),
        http(document(p={}, q={}))[:-30],
        b"rubbish\r\n\r\n",
    ],
)
async def test_bad_answers_change_nothing_and_are_not_tried_again_today(
    cache: Path, shipped: Catalog, answer: bytes
) -> None:
    cache.mkdir()
    (cache / FETCHED_FILE_NAME).write_bytes(b"old")
    async with serving(answer) as (url, _):
        with pytest.raises(RefreshFailed):
            await refresh_catalog(cache, {"CODELOOP_MODELS_URL": url}, shipped)
    assert (cache / FETCHED_FILE_NAME).read_bytes() == b"old"
    assert not is_refresh_due(cache, {})


async def test_offline_is_silent_in_the_background(cache: Path, shipped: Catalog) -> None:
    await refresh_catalog_if_due(
        cache, {"CODELOOP_MODELS_URL": "http://127.0.0.1:9/api.json"}, shipped
    )
    assert not (cache / FETCHED_FILE_NAME).exists()


async def test_a_short_process_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    begin = make_startup(tmp_path / "home", tmp_path / "work")
    async with serving(http(document(p={}, q={}))) as (url, heads):
        environment = {**begin.environment, "CODELOOP_MODELS_URL": url}
        project = await open_project(replace(begin, environment=environment))
        project.refresh_catalog()
        await asyncio.sleep(0.05)
        await project.close()
        assert heads == []
    assert not list(tmp_path.rglob(FETCHED_FILE_NAME))


def test_a_fetch_is_due_once_a_day_and_can_be_switched_off(cache: Path) -> None:
    assert is_refresh_due(cache, {})
    assert not is_refresh_due(cache, {"CODELOOP_DISABLE_MODELS_FETCH": "1"})
    assert is_refresh_due(cache, {"CODELOOP_DISABLE_MODELS_FETCH": "0"})
    cache.mkdir()
    stamp = cache / "models.bin.tried"
    stamp.touch()
    assert not is_refresh_due(cache, {})
    yesterday = time.time() - 86_401
    os.utime(stamp, (yesterday, yesterday))
    assert is_refresh_due(cache, {})


async def test_a_cache_that_can_not_be_written_is_an_error_not_a_crash(
    tmp_path: Path, shipped: Catalog
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RefreshFailed, match="can't be used"):
        await refresh_catalog(tmp_path / "file" / "cache", {}, shipped)
