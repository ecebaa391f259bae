"""Settings and fixtures of all tests: signals, file modes, garbage collection,
temporary folders.
"""

import gc
import os
import re
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest

from codeloop.kit.remove_tree import remove_tree
from tests.support.examples import configure_hypothesis

HAS_PASSED = pytest.StashKey[bool]()


def pytest_configure() -> None:
    """Take signals as a program in the foreground does: one in the background ignores some,
    and so do its children.

    Files get the usual modes, too, whatever the umask of who runs this: git records nothing else.
    No keyring of the machine is used. `python3` is the interpreter itself: the script that a
    version manager has in its place takes twice as long to start.
    """
    # Not where it is already: with the system's Python,
    # /usr/bin would come before all other folders of programs.
    if Path(shutil.which("python3") or "").resolve() != Path(sys.executable).resolve():
        os.environ["PATH"] = f"{Path(sys.base_exec_prefix) / 'bin'}:{os.environ['PATH']}"
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    configure_hypothesis()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave thousands of collected tests out of what is searched for garbage: that was
    a sixth of the suite's time.
    """
    gc.disable()
    collected = yield
    # Without a collection before: that takes each worker half a second.
    gc.freeze()
    gc.enable()
    return collected


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers for the names of folders."""
    return count()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, numbers: Iterator[int]
) -> Iterator[Path]:
    """A folder of the test's own, which is kept if it fails: all of them are 900 MB.

    pytest's looks through those of all others for a free name: two milliseconds each.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(numbers)}"
    folder.mkdir(mode=0o700)
    yield folder
    if request.node.stash.get(HAS_PASSED, False):
        remove_tree(folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether a test has passed, for what comes after it."""
    report = yield
    if call.when == "call":
        item.stash[HAS_PASSED] = report.passed
    return report
