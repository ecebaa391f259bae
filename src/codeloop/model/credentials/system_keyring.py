"""Reads and stores keys in the system's keyring, by the Python package `keyring`,
which is imported when first used.

An entry's service is `codeloop`, its user name `PROVIDER ORIGIN`: a key only comes
back for its own origin.
"""

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

from codeloop.model.errors import ModelUnavailable
from codeloop.schema.bounds.cloud import KEYRING_CHECK
from codeloop.schema.limits import KEY_HELPER

_KEYRING_SERVICE = "codeloop"
_NO_PACKAGE_MESSAGE = """the Python package `keyring` is not installed where codeloop is.
Install it there (`pip install keyring`), or keep the key in a file: `codeloop auth login {provider} --no-keyring`"""
_NO_KEYRING_MESSAGE = """the package `keyring` finds none that it can use here.
`keyring diagnose` says more. To keep the key in a file: `codeloop auth login {provider} --no-keyring`"""
_LOCKED_MESSAGE = "it is locked ({error}). Unlock it, and try again"


class KeyringSigner:
    """Signs requests with a key of the keyring, which is read at the first one.

    `make_headers` makes the headers that carry the key;
    `remember` is called with the key once it has been read.
    """

    def __init__(
        self,
        provider: str,
        origin: str,
        make_headers: Callable[[str], dict[str, str]],
        remember: Callable[[str], None],
    ) -> None:
        self._provider = provider
        self._origin = origin
        self._make_headers = make_headers
        self._remember = remember
        self.key = ""
        """Empty until it was read."""
        self._lock = asyncio.Lock()

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with the key. Raises `ModelUnavailable` as `read_key` does,
        or when nothing answers.
        """
        del url, headers, body
        # Concurrent requests read it once, so that the user is asked only once to unlock it.
        async with self._lock:
            if not self.key:
                try:
                    async with asyncio.timeout(KEY_HELPER.seconds):
                        self.key = await _run_in_thread(
                            partial(read_key, self._provider, self._origin)
                        )
                except TimeoutError:
                    raise ModelUnavailable(
                        f"The system's keyring, which has the key of {self._provider}, did not answer within "
                        f"{KEY_HELPER.seconds:g} s. Unlock it, and try again."
                    ) from None
                self._remember(self.key)
            return self._make_headers(self.key)


def read_key(provider: str, origin: str) -> str:
    """Return a provider's key for an origin. Blocks: the system may ask the
    user to unlock the keyring.

    Raises `ModelUnavailable`: the keyring can't be used, or has no such key.
    """
    with _open_keyring(provider) as keyring:
        key = keyring.get_password(_KEYRING_SERVICE, f"{provider} {origin}")
    if not key:
        raise ModelUnavailable(
            f"The system's keyring has no key of {provider} for {origin}. "
            f"Store it again: `codeloop auth login {provider} --keyring`."
        )
    return str(key)


def store_key(provider: str, origin: str, key: str) -> None:
    """Store a provider's key for an origin in place of the old one. Blocks as `read_key` does.

    Raises `ModelUnavailable`: the keyring can't be used, or does not keep what it is given.
    """
    with _open_keyring(provider) as keyring:
        keyring.set_password(_KEYRING_SERVICE, f"{provider} {origin}", key)
    # Some backends accept a key and drop it: better to notice that now than at the next start.
    if read_key(provider, origin) != key:
        raise ModelUnavailable(
            "The system's keyring gives back another key than the one that was stored."
        )


def remove_key(provider: str, origin: str) -> None:
    """Remove a provider's key for an origin; nothing happens if there is none.
    Blocks as `read_key` does.

    Raises `ModelUnavailable`: the keyring can't be used.
    """
    with _open_keyring(provider) as keyring:
        if keyring.get_password(_KEYRING_SERVICE, f"{provider} {origin}") is not None:
            keyring.delete_password(_KEYRING_SERVICE, f"{provider} {origin}")


@contextmanager
def _open_keyring(provider: str) -> Generator[Any]:
    """Yield the backend that the package `keyring` chooses; its errors become ModelUnavailable."""

    def refuse(why: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"The system's keyring can't be used for the key of {provider}: {why}."
        )

    try:
        import keyring
        from keyring.backends.fail import Keyring as NoBackend
        from keyring.errors import KeyringError, KeyringLocked, NoKeyringError
    except ImportError:
        raise refuse(_NO_PACKAGE_MESSAGE.format(provider=provider)) from None
    try:
        backend = keyring.get_keyring()
        if isinstance(backend, NoBackend):
            raise NoKeyringError
        yield backend
    except NoKeyringError:
        raise refuse(_NO_KEYRING_MESSAGE.format(provider=provider)) from None
    except KeyringLocked as error:
        raise refuse(_LOCKED_MESSAGE.format(error=error)) from error
    except (KeyringError, ImportError, AttributeError, OSError, RuntimeError, ValueError) as error:
        # Backends also raise errors of their own.
        raise refuse(f"{type(error).__name__}: {error}") from error


async def has_keyring() -> bool:
    """Return whether the system has a keyring that can be used;
    without the package nothing is imported.
    """
    if find_spec("keyring") is None:
        return False

    def find_name() -> str:
        with _open_keyring("") as keyring:
            return type(keyring).__name__

    with suppress(ModelUnavailable, TimeoutError):
        async with asyncio.timeout(KEYRING_CHECK.seconds):
            return bool(await _run_in_thread(find_name))
    return False


async def _run_in_thread(read: Callable[[], str]) -> str:
    """Run `read` in a daemon thread: the keyring's dialog may stay open,
    and must not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def settle(key: str, error: ModelUnavailable | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(key)
        else:
            answer.set_exception(error)

    def run() -> None:
        key, failure = "", None
        try:
            key = read()
        except ModelUnavailable as error:
            failure = error
        # RuntimeError: the loop is closed, so nobody is waiting.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, key, failure)

    threading.Thread(target=run, name="keyring", daemon=True).start()
    return await answer
