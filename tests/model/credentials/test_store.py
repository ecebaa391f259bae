"""Tests of the credentials file: keys are bound to their origin, private, never half-written,
never shown.
"""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.model.base_url import parse_origin
from codeloop.model.credentials import store
from codeloop.model.credentials.store import ApiKey, Credentials, mask_key
from codeloop.model.errors import ModelUnavailable, WrongKeyOrigin
from codeloop.schema.wire import replace
from tests.support.examples import scale_examples

KEY = "sk-acme-0123456789abcd"
URLS = st.builds(
    "{}://{}{}/v1".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(
        ["a.example", "b.example", "a.example.evil.example", "evil.example", "127.0.0.1"]
    ),
    st.sampled_from(["", ":443", ":80", ":8443"]),
)


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return Credentials(tmp_path / "data" / "auth.json")


def test_a_key_comes_back_for_its_origin(credentials: Credentials) -> None:
    credentials.store_key("acme", KEY, "https://api.acme.example/v1")
    assert credentials.find_key("acme", "https://api.acme.example:443/v2/other") == KEY
    assert credentials.find_key("other", "https://api.acme.example") is None


def test_another_origin_gets_an_error_that_names_both(credentials: Credentials) -> None:
    credentials.store_key("acme", KEY, "https://api.acme.example/v1")
    with pytest.raises(WrongKeyOrigin) as failed:
        credentials.find_key("acme", "https://evil.example/v1", ["https://evil.example/v1"])
    text = str(failed.value)
    assert "https://api.acme.example" in text
    assert "https://evil.example" in text
    assert "codeloop auth login acme" in text
    assert KEY not in text


@settings(max_examples=scale_examples(60))
@given(stored=URLS, asked=URLS, home=URLS)
def test_a_key_goes_to_its_origin_and_nowhere_else(
    tmp_path_factory: pytest.TempPathFactory, stored: str, asked: str, home: str
) -> None:
    credentials = Credentials(tmp_path_factory.mktemp("c") / "auth.json")
    credentials.store_key("acme", KEY, stored)
    if parse_origin(stored) == parse_origin(asked):
        assert credentials.find_key("acme", asked, [home]) == KEY
    else:
        with pytest.raises(WrongKeyOrigin):
            credentials.find_key("acme", asked, [home])


def test_an_entry_of_the_reference_belongs_to_the_catalogs_origin(credentials: Credentials) -> None:
    credentials.path.parent.mkdir()
    credentials.path.write_text(f'{{"acme": {{"type": "api", "key": "{KEY}"}}}}')
    assert (
        credentials.find_key("acme", "https://api.acme.example/v1", ["https://api.acme.example/v1"])
        == KEY
    )
    with pytest.raises(WrongKeyOrigin):
        credentials.find_key("acme", "https://evil.example/v1", ["https://api.acme.example/v1"])
    with pytest.raises(WrongKeyOrigin, match="no known address"):
        credentials.find_key("acme", "https://evil.example/v1")


def test_entries_of_other_types_survive_a_change(credentials: Credentials) -> None:
    credentials.path.parent.mkdir()
    other = {"type": "oauth", "refresh": "r", "access": "a", "expires": 1}
    credentials.path.write_bytes(msgspec.json.encode({"copilot": other}))
    credentials.store_key("acme", KEY, "https://api.acme.example")
    assert list(credentials.read_entries()) == ["acme"]
    assert msgspec.json.decode(credentials.path.read_bytes())["copilot"] == other
    assert credentials.remove_entry("acme")
    assert not credentials.remove_entry("acme")
    assert msgspec.json.decode(credentials.path.read_bytes()) == {"copilot": other}


def test_the_file_and_its_folder_are_private_even_under_a_loose_umask(
    credentials: Credentials,
) -> None:
    before = os.umask(0)
    try:
        credentials.store_key("acme", KEY, "https://api.acme.example")
    finally:
        os.umask(before)
    assert stat.S_IMODE(credentials.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(credentials.path.parent.stat().st_mode) == 0o700
    assert not credentials.is_open_to_others()
    credentials.path.chmod(0o644)
    assert credentials.is_open_to_others()
    credentials.store_key("other", KEY, "https://api.acme.example")
    assert not credentials.is_open_to_others()


BAD_TEXT = b'{"acme": {"type": "api", "key": "\xff"}}'


@pytest.mark.parametrize(
    "content", [b'{"acme": {"type"', b"[]", b"", b"\xff\xfe", b"null", BAD_TEXT, b" " * 2_000_000]
)
def test_a_broken_file_is_reported_and_left_as_it_is(
    credentials: Credentials, content: bytes
) -> None:
    credentials.path.parent.mkdir()
    credentials.path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match="broken"):
        credentials.read_entries()
    with pytest.raises(ModelUnavailable, match="left as they are"):
        credentials.store_key("acme", KEY, "https://api.acme.example")
    assert credentials.path.read_bytes() == content


def test_a_link_to_the_file_stays_a_link(credentials: Credentials, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "auth.json"
    real.parent.mkdir()
    real.write_text("{}")
    credentials.path.parent.mkdir()
    credentials.path.symlink_to(real)
    credentials.store_key("acme", KEY, "https://api.acme.example")
    assert credentials.path.is_symlink()
    assert Credentials(real).find_key("acme", "https://api.acme.example") == KEY


def test_a_full_disk_leaves_the_old_bytes(credentials: Credentials) -> None:
    credentials.store_key("acme", KEY, "https://api.acme.example")
    before = credentials.path.read_bytes()
    program = """
import resource, sys
from pathlib import Path
from codeloop.model.credentials.store import Credentials
from codeloop.schema.errors import CodeloopError
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    Credentials(Path(sys.argv[1])).store_key("more", "k" * 500, "https://api.acme.example")
except CodeloopError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(credentials.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "can't be written" in done.stdout
    assert "Nothing was changed" in done.stdout
    assert credentials.path.read_bytes() == before
    assert sorted(path.name for path in credentials.path.parent.iterdir()) == [
        "auth.json",
        "auth.json.lock",
    ]


def test_changes_at_the_same_time_are_all_kept(
    credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CREDENTIALS_LOCK", replace(store.CREDENTIALS_LOCK, value=60_000))
    names = [f"p{number}" for number in range(12)]
    threads = [
        threading.Thread(target=credentials.store_key, args=(name, KEY, "https://a.example"))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(credentials.read_entries()) == sorted(names)


@given(st.text(max_size=60))
def test_a_masked_key_shows_at_most_seven_characters(key: str) -> None:
    shown = mask_key(key)
    assert len(shown) <= 8
    if len(key) < 16:
        assert shown == "…"
    assert repr(ApiKey(key=key)) == f"ApiKey(key={shown!r}, origin='')"


def test_a_key_is_not_in_the_entrys_repr() -> None:
    assert KEY not in repr(ApiKey(key=KEY, origin="https://a.example"))
    assert "sk-…abcd" in repr(ApiKey(key=KEY))
