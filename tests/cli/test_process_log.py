"""The log has a size, an owner, and no way to make a line of it look like another."""

import logging
import stat
from pathlib import Path

import pytest

from codeloop.cli.target import process_log as log
from codeloop.cli.target.process_log import log_to_file
from codeloop.schema.limits import SERVER_LOG, SERVER_LOG_LINE
from codeloop.schema.wire import replace

LOGGER = logging.getLogger("codeloop.server")


def test_it_holds_what_its_level_says_and_only_faults_of_libraries(tmp_path: Path) -> None:
    with log_to_file(tmp_path / "log", "warn") as path:
        LOGGER.info("one")
        LOGGER.warning("two")
        logging.getLogger("uvicorn.error").info("three")
        logging.getLogger("uvicorn.error").error("four")
    LOGGER.warning("five")
    text = path.read_text()
    assert ["one" in text, "two" in text, "three" in text, "four" in text, "five" in text] == [
        0,
        1,
        0,
        1,
        0,
    ]
    with log_to_file(tmp_path / "log", "no such level"):
        LOGGER.info("six")
    assert "six" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_entry_is_cut_and_can_not_steer_a_terminal(tmp_path: Path) -> None:
    with log_to_file(tmp_path, "INFO") as path:
        LOGGER.info("\x1b[2J%s", "a" * 2 * SERVER_LOG_LINE.value)
        wrong = "%s %s"
        LOGGER.info(wrong, "too few arguments do not raise")
        LOGGER.info("\udcff")
    text = path.read_text()
    assert "\x1b" not in text
    assert len(text) < SERVER_LOG_LINE.value + 200


def test_two_files_of_bounded_size_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SERVER_LOG", replace(SERVER_LOG, value=2000))
    with log_to_file(tmp_path, "INFO"):
        for n in range(200):
            LOGGER.info("entry %d", n)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(files) == {"server.log", "server.log.1"}
    assert all(len(text) < 2200 for text in files.values())
    assert "entry 199" in files["server.log"] + files["server.log.1"]


def test_a_link_or_a_folder_in_its_place_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "server.log").symlink_to(target)
    with log_to_file(tmp_path / "log", "INFO"):
        LOGGER.info("one")
    assert target.read_text() == "mine"
    (tmp_path / "log2" / "server.log").mkdir(parents=True)
    with log_to_file(tmp_path / "log2", "INFO"):
        LOGGER.info("one")
