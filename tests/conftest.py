"""What every test starts from."""

import gc
import signal
from collections.abc import Generator

import pytest

from tests.support.examples import choose_examples


def pytest_configure() -> None:
    """Take signals as a program in the foreground does: one in the background ignores some, and so do its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    choose_examples()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave thousands of collected tests out of what is searched for garbage: that was a sixth of the suite's time."""
    gc.disable()
    collected = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return collected
