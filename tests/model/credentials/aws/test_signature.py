"""Tests of signatures, against those that botocore makes of the same requests."""

import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.credentials.aws.signature import AwsKeys, make_signature_headers

ROWS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("signatures.json").read_text(encoding="utf-8")
)
"""Made by `tests/interop/sdks/signatures.py` with botocore;
`tests/interop/test_sdks.py` makes them anew.
"""


@pytest.mark.parametrize("row", ROWS, ids=[row["url"] for row in ROWS])
def test_a_signature_is_that_of_botocore(row: dict[str, Any]) -> None:
    keys = AwsKeys("AKIAEXAMPLE", "se/cr+et=", row["token"])
    given = {"region": row["region"], "service": row["service"], "moment": "20260101T000000Z"}
    signed = make_signature_headers(keys, row["url"], row["headers"], row["body"].encode(), **given)
    assert signed["authorization"] == row["authorization"]
    assert signed.get("x-amz-security-token", "") == row["token"]


def test_keys_do_not_show_their_secret() -> None:
    assert "secret" not in repr(AwsKeys("AKIAEXAMPLE", "secret", "secret-token"))
