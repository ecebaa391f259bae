"""What sessions have read, and the locks of files that change."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from codeloop.workspace.files.read_log import ReadLog
from codeloop.workspace.files.safe_open import FileStamp, read_file


async def test_a_lock_is_shared_by_path_and_goes_when_nobody_holds_it(tmp_path: Path) -> None:
    log = ReadLog()
    lock = log.get_lock(tmp_path)
    assert log.get_lock(tmp_path) is lock
    async with lock:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(log.get_lock(tmp_path).acquire(), 0.01)


def test_sessions_know_their_own_files(tmp_path: Path) -> None:
    log = ReadLog()
    (tmp_path / "f").write_bytes(b"x")
    log.record_read("ses_a", tmp_path / "f", read_file(tmp_path / "f").stamp)
    assert log.find_last_stamp("ses_b", tmp_path / "f") is None
    assert log.find_last_stamp("ses_a", tmp_path / "f") is not None
    assert log.record_first_load("msg_a", tmp_path)
    assert not log.record_first_load("msg_a", tmp_path)


def test_a_thread_looks_for_changes_while_other_sessions_read(tmp_path: Path) -> None:
    log, stamp, before = ReadLog(), FileStamp(0, 0), sys.getswitchinterval()
    for number in range(2_000):
        log.record_read("ses_other", tmp_path / str(number), stamp)
    has_looked, is_done = Event(), Event()

    def look() -> None:
        while not is_done.is_set():
            log.take_changed_files("ses_a")
            log.list_files()
            has_looked.set()

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as threads:
            looking = threads.submit(look)
            assert has_looked.wait(60)
            for number in range(2_000):
                log.record_read(f"ses_{number}", tmp_path, stamp)
            is_done.set()
            looking.result()
    finally:
        sys.setswitchinterval(before)
