"""The trajectories fit their project, and what is new of a request is counted."""

from pathlib import Path

import pytest

from bench.__main__ import parse_arguments
from bench.language_task import make_shop
from bench.recorded_requests import RecordedRequest
from bench.request_cost import (
    BREAK_MS,
    add_prices,
    compute_billed_bytes,
    compute_new_share,
    shift_times,
)
from bench.scenario_server import Scenario
from bench.subjects import make_codeloop, make_other
from bench.trajectories import TRAJECTORIES, make_answers, make_project


def requests(*bodies: bytes) -> list[RecordedRequest]:
    return [RecordedRequest(0.0, 0.0, body) for body in bodies]


@pytest.mark.parametrize(
    ("bodies", "share"),
    [
        ((), None),
        ((b"abcd",), 1.0),
        ((b"abcd", b"abcdefgh"), 8 / 12),
        ((b"abcd", b"xbcd"), 1.0),
        ((b"ab", b"ab"), 0.5),
    ],
)
def test_what_repeats_the_beginning_of_the_request_before_is_not_new(
    bodies: tuple[bytes, ...], share: float | None
) -> None:
    assert compute_new_share(requests(*bodies)) == (None if share is None else pytest.approx(share))


def test_billed_input_counts_what_is_read_from_the_cache_at_a_tenth() -> None:
    assert compute_billed_bytes(requests()) == 0
    assert compute_billed_bytes(requests(b"a" * 100)) == pytest.approx(125)
    assert compute_billed_bytes(requests(b"a" * 100, b"a" * 100 + b"b" * 20)) == pytest.approx(
        125 + 10 + 25
    )
    assert compute_billed_bytes(requests(b"a" * 100, b"b" * 100)) == pytest.approx(250)


def test_only_codeloop_is_told_prices() -> None:
    assert '"cost"' in add_prices(make_codeloop()).environ["CODELOOP_CONFIG_CONTENT"]
    other = make_other("agent {prompt}", ["A=1"], None)
    assert add_prices(other) == other


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_each_edit_of_a_trajectory_finds_its_text_once_in_the_project(
    tmp_path: Path, name: str
) -> None:
    (make_shop if name.endswith("servers") else make_project)(tmp_path)
    for tool, given in (call for calls in TRAJECTORIES[name] for call in calls):
        if tool == "read":
            assert (tmp_path / str(given["filePath"])).is_file()
        if tool == "edit":
            file = tmp_path / str(given["filePath"])
            assert file.read_text().count(str(given["oldString"])) == 1
            file.write_text(
                file.read_text().replace(str(given["oldString"]), str(given["newString"]))
            )
        if tool == "lsp":
            for file in (tmp_path / "shop").glob("*.py"):
                text = file.read_text()
                file.write_text(text.replace("total", "amount_due") if "Invoice" in text else text)
    made = [call.id for answer in make_answers(name) for call in answer.calls]
    assert len(set(made)) == len(made)
    assert Scenario("trajectory", name=name).list_answers()[-1].text == "Done."


def test_an_hour_passes_for_every_time_that_is_stored() -> None:
    now = 10 * BREAK_MS
    stored = {
        "id": "x",
        "time": {"created": now, "start": now},
        "parts": [{"end": now}],
        "offset": now,
        "cost": 0,
    }
    past = now - BREAK_MS
    assert shift_times(stored) == {
        **stored,
        "time": {"created": past, "start": past},
        "parts": [{"end": past}],
    }


def test_a_name_asks_for_all_rows_that_begin_with_it() -> None:
    assert parse_arguments(["--only", "economy"]).only == ["economy"]
