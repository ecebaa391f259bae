"""Runs the program of `apiKeyHelper`, which prints a key: when a request needs it,
and again after a while.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from codeloop.kit.child_process import Launch
from codeloop.kit.program import run_program
from codeloop.kit.programs import make_safe_environment
from codeloop.model.credentials.store import is_valid_key
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.limits import KEY_HELPER, KEY_HELPER_TTL, KEY_LENGTH

_MAX_MESSAGE_LENGTH = 300
"""Characters of the program's stderr that are shown."""


class KeyHelper:
    """Signs requests with the key that `command` prints.
    `make_headers` makes the headers that carry a key.

    `ttl`: seconds for which a key is used again.
    """

    def __init__(
        self,
        provider_id: str,
        command: Sequence[str],
        make_headers: Callable[[str], dict[str, str]],
        ttl: float = KEY_HELPER_TTL.seconds,
    ) -> None:
        self._setting = f"provider.{provider_id}.options.apiKeyHelper"
        self._command = [*command]
        self._make_headers = make_headers
        self._ttl = ttl
        self.key = ""
        """The key that was printed last; empty before the first run."""
        self._expires_at = 0.0
        self._lock = asyncio.Lock()

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with the key. Raises `ModelUnavailable`: the program gave none."""
        del url, headers, body
        # Concurrent requests wait for one run of the program.
        async with self._lock:
            if time.monotonic() >= self._expires_at:
                self.key = await self._run_program()
                self._expires_at = time.monotonic() + self._ttl
            return self._make_headers(self.key)

    async def _run_program(self) -> str:
        try:
            # Run in `/`, with absolute folders in PATH: a project must not provide the program.
            launch = Launch(
                self._command,
                "/",
                make_safe_environment(os.environ),
                is_apart=False,
                seconds=KEY_HELPER.seconds,
            )
            result = await run_program(launch)
        except OSError as error:
            raise ModelUnavailable(
                f"{self._setting} can't be run: {error.strerror}: {self._command[0]}. Correct it in codeloop.json."
            ) from None
        if result.stop_reason == "time":
            raise ModelUnavailable(
                f"{self._setting} printed no key within {KEY_HELPER.seconds:g} s."
            )
        # Two more than a key may have: room for the line break,
        # and one to notice that it is too long.
        key = result.stdout[: KEY_LENGTH.value + 2].decode("utf-8", "replace").strip()
        if result.code == 0 and is_valid_key(key):
            return key
        message = " ".join(result.error_text.split())[:_MAX_MESSAGE_LENGTH]
        outcome = f"ended with {result.code}" if result.code else "printed no key"
        raise ModelUnavailable(
            f"{self._setting} {outcome}{f' ({message})' if message else ''}. Run it in a shell to see why."
        )


def parse_helper_command(provider_id: str, value: object) -> list[str]:
    """Return the words of the option `apiKeyHelper`: a list, or a line for the shell.
    Raises `ModelUnavailable`.
    """
    if isinstance(value, str) and value.strip():
        return ["/bin/sh", "-c", value]
    try:
        words = msgspec.convert(value, list[str])
    except msgspec.ValidationError:
        words = []
    if not words:
        setting = f"provider.{provider_id}.options.apiKeyHelper"
        raise ModelUnavailable(
            f"{setting} must be a command: a text for the shell, or a list of words."
        )
    return words
