"""The file of schedules, when several processes change it at once."""

import contextlib
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from codeloop.kit.small_files import lock
from codeloop_automation.schedule import schedule_store
from codeloop_automation.schedule.schedule_store import Schedule, ScheduleStore


def make_schedule(name: str) -> Schedule:
    return Schedule(
        id=name, when="@daily", prompt="look", directory="/", flags=[], timeout=1, timer="cron", environment={},
        last_due=0,
    )  # fmt: skip


def test_what_another_process_adds_while_the_last_schedule_is_removed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other_store = ScheduleStore(tmp_path), ScheduleStore(tmp_path)
    store.add(make_schedule("old"))

    @contextlib.contextmanager
    def lock_late(path: Path, seconds: float) -> Generator[None]:
        if path == store.run_lock:
            other_store.add(make_schedule("new"))
        with lock(path, seconds):
            yield

    monkeypatch.setattr(schedule_store, "lock", lock_late)
    store.remove("old")
    assert [each.id for each in store.list_all()] == ["new"]


def test_a_folder_that_another_process_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ScheduleStore(tmp_path)
    folders: list[Path] = []

    def create_late(folder: Path) -> None:
        folders.append(folder)
        if len(folders) > 1:
            folder.mkdir(parents=True)

    monkeypatch.setattr(schedule_store, "create_private_folder", create_late)
    store.add(make_schedule("new"))
    assert [each.id for each in store.list_all()] == ["new"]
    store.remove("new")
    assert not store.folder.exists()


def test_a_schedule_that_waits_for_the_removal_of_the_folder_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ScheduleStore(tmp_path)
    removed: list[Path] = []

    @contextlib.contextmanager
    def lock_removed_folder(path: Path, seconds: float) -> Generator[None]:
        with lock(path, seconds):
            if not removed:
                removed.append(path)
                shutil.rmtree(path)
            yield

    monkeypatch.setattr(schedule_store, "lock", lock_removed_folder)
    store.add(make_schedule("new"))
    assert [each.id for each in store.list_all()] == ["new"]
