"""Packed rows: small, read back whole by their own keys, plain JSON as it is."""

from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.store import packing
from codeloop.store.packing import pack, unpack

KEYS = ("ses_dd7fd84a1ffevMoOXwq402okOl", "msg_2280288ce005OOoqnvZAn6Rvy7")
DIGEST = "e81732852b99a609"
"""Of the dictionary, by SHA-256: rows that were packed with it need it for ever."""


@given(data=st.binary(max_size=10_000), keys=st.lists(st.text(max_size=40), max_size=3))
def test_what_is_packed_is_read_back(data: bytes, keys: list[str]) -> None:
    assert unpack(pack(data, *keys), *keys) == data


def test_what_its_columns_say_takes_no_space() -> None:
    data = msgspec.json.encode({"type": "step-start", "id": KEYS[1], "sessionID": KEYS[0]})
    assert len(pack(data, *KEYS)) < len(data) / 3


def test_a_row_of_an_earlier_version_is_plain() -> None:
    assert unpack(b'{"type":"text"}', *KEYS) == b'{"type":"text"}'


def test_rows_that_were_packed_before_can_be_read() -> None:
    assert sha256(packing._DICTIONARY).hexdigest().startswith(DIGEST)


def test_a_damaged_row_is_an_error_of_decoding() -> None:
    with pytest.raises(msgspec.DecodeError, match="damaged"):
        unpack(pack(b"x" * 100)[:1] + b"\xff" * 20)
