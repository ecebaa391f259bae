"""Tests of the catalog file: packing and reading, decoding of used parts only, broken files."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.model.catalog.catalog import BUNDLED_FILE, FETCHED_FILE_NAME, Catalog
from codeloop.model.catalog.packer import pack_catalog, parse_source
from codeloop.model.catalog.vendors import BASE_URLS, EXPLICIT_PROVIDERS, PREFERRED_PROVIDERS
from codeloop.model.chat import Prices, TokenLimits
from codeloop.model.errors import ModelUnavailable
from tests.support.examples import scale_examples

ROOT = Path(__file__).parents[3]
SOURCE = {
    "acme": {
        "id": "acme",
        "name": "Acme",
        "env": ["ACME_KEY"],
        "npm": "@ai-sdk/openai-compatible",
        "api": "https://api.acme.example/v1/",
        "models": {
            "big": {
                "id": "big",
                "name": "Big",
                "tool_call": True,
                "reasoning": True,
                "attachment": True,
                "release_date": "2026-01-02",
                "family": "bigs",
                "status": "beta",
                "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
                "cost": {
                    "input": 1.25,
                    "output": 10,
                    "cache_read": 0.125,
                    "cache_write": 2,
                    "unknown": [],
                },
                "limit": {"context": 200000, "output": 64000, "input": 136000},
                "interleaved": {"field": "reasoning_content"},
                "provider": {"npm": "@ai-sdk/anthropic"},
            },
            "painter": {"id": "painter", "name": "Painter", "tool_call": False},
        },
    },
    "empty": {"id": "empty", "name": "Empty", "models": {"x": {"id": "x"}}},
}


def write(path: Path, source: object = SOURCE, built: str = "2026-01-01") -> Path:
    path.write_bytes(pack_catalog(parse_source(msgspec.json.encode(source)), built))
    return path


def test_a_model_comes_back_with_everything_that_is_used(tmp_path: Path) -> None:
    model = Catalog(bundled=write(tmp_path / "c")).find_model("acme", "big")
    assert model is not None
    assert model.ref == "acme/big"
    assert model.npm == "@ai-sdk/anthropic"
    assert model.limits == TokenLimits(context=200_000, output=64_000, input=136_000)
    assert model.prices == Prices(1.25, 10, 0.125, 2, is_known=True)
    assert model.input == {"text", "image", "pdf"}
    assert (model.reasoning, model.attachment, model.temperature) == (True, True, False)
    assert (model.reasoning_field, model.status, model.family) == (
        "reasoning_content",
        "beta",
        "bigs",
    )


def test_models_without_tools_are_left_out_but_their_provider_stays(tmp_path: Path) -> None:
    catalog = Catalog(bundled=write(tmp_path / "c"))
    assert [(row.id, row.count) for row in catalog.list_providers()] == [("acme", 1), ("empty", 0)]
    assert catalog.find_model("acme", "painter") is None
    assert catalog.find_provider("nobody") is None
    assert catalog.environment_names == {"ACME_KEY"}
    row = catalog.find_row("acme")
    assert row is not None
    assert row.api == "https://api.acme.example/v1"


def test_the_newest_readable_file_counts(tmp_path: Path) -> None:
    shipped, fetched = write(tmp_path / "shipped", built="2026-02-01"), tmp_path / FETCHED_FILE_NAME
    assert Catalog(tmp_path, bundled=shipped).path == shipped
    write(fetched, built="2026-01-01")
    assert Catalog(tmp_path, bundled=shipped).path == shipped
    write(fetched, built="2026-03-01")
    assert Catalog(tmp_path, bundled=shipped).path == fetched
    for rubbish in (
        b"",
        b"CLC1",
        b"CLC1\x00\x00\x00\x04abcd",
        fetched.read_bytes()[:60],
        b"{}" * 99,
    ):
        fetched.write_bytes(rubbish)
        assert Catalog(tmp_path, bundled=shipped).path == shipped


def test_without_a_readable_file_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="Install codeloop again"):
        Catalog(bundled=tmp_path / "none").list_providers()


def test_a_damaged_provider_is_an_error_and_the_others_still_work(tmp_path: Path) -> None:
    two = {**SOURCE, "last": {**SOURCE["acme"], "id": "last"}}
    path = write(tmp_path / "c", two)
    path.write_bytes(path.read_bytes()[:-20])
    catalog = Catalog(bundled=path)
    assert catalog.find_model("acme", "big") is not None
    with pytest.raises(ModelUnavailable, match="damaged"):
        catalog.find_provider("last")


def test_the_shipped_catalog_knows_the_providers_that_our_rows_name() -> None:
    catalog = Catalog()
    assert len(catalog.list_providers()) > 100
    assert catalog.path == BUNDLED_FILE
    known = {row.id for row in catalog.list_providers()}
    assert set(BASE_URLS) <= known
    assert set(PREFERRED_PROVIDERS) <= known
    assert known >= EXPLICIT_PROVIDERS
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        assert name in catalog.environment_names


def test_every_shipped_provider_decodes() -> None:
    catalog = Catalog()
    for row in catalog.list_providers():
        provider = catalog.find_provider(row.id)
        assert provider is not None
        assert len(provider.models) == row.count


def test_the_shipped_catalog_is_small() -> None:
    assert BUNDLED_FILE.stat().st_size < 400_000


def test_the_script_refuses_wrong_arguments() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "build_catalog.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "usage" in done.stderr


PRICES = st.floats(min_value=0, max_value=1000, allow_nan=False)


@pytest.mark.slow
@settings(max_examples=scale_examples(40))
@given(
    st.lists(
        st.tuples(st.text(min_size=1).filter(str.isprintable), PRICES, st.integers(0, 10**9)),
        min_size=1,
        unique_by=lambda row: row[0],
    )
)
def test_packing_loses_nothing(rows: list[tuple[str, float, int]]) -> None:
    models = {
        name: {
            "id": name,
            "name": name,
            "tool_call": True,
            "cost": {"input": price},
            "limit": {"context": context},
        }
        for name, price, context in rows
    }
    source = parse_source(msgspec.json.encode({"p": {"id": "p", "name": "P", "models": models}}))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "catalog"
        path.write_bytes(pack_catalog(source, "2026-01-01"))
        provider = Catalog(bundled=path).find_provider("p")
    assert provider is not None
    assert [(m.id, m.prices.input, m.limits.context) for m in provider.models.values()] == rows
