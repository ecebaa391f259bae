"""A model wrapper for addresses that may have no Responses API: where there is none,
chat completions are used.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path

from codeloop.kit.small_files import create_private_folder, read_start_or_empty, write_atomically
from codeloop.model.base_url import redact_url
from codeloop.model.chat import (
    ChatModel,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    RetryScheduled,
)
from codeloop.model.quirks import Quirks, find_quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.schema.errors import APIError, MessageError
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import replace

_FILE_NAME = "chat-addresses"
_MAX_FILE_BYTES = 64 * 1024


class ResponsesOrChat:
    """Passes requests on to `responses`, or to the model that `open_chat` makes where
    the address has no Responses.

    `file`: the addresses, one a line, of which that is known;
    None: it is found out again in each process.
    """

    def __init__(
        self,
        responses: ChatModel,
        open_chat: Callable[[], ChatModel],
        address: str,
        file: Path | None,
    ) -> None:
        self._model = responses
        self._open_chat = open_chat
        self._address = address
        self._file = file
        self._is_settled = file is not None and address in _read_addresses(file)
        if self._is_settled:
            self._model = open_chat()

    @property
    def info(self) -> ModelInfo:
        """The wrapped model's metadata."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the request, the first one perhaps twice, and yield events until Finished."""
        refusal: Finished | None = None
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if (
                    isinstance(event, Finished)
                    and not self._is_settled
                    and _has_nothing_there(event.error)
                ):
                    refusal = event
                    break
                self._is_settled = (
                    self._is_settled or not isinstance(event, Finished) or event.error is None
                )
                yield event
        if refusal is None:
            return
        chat = self._open_chat()
        async with aclosing(chat.stream(request)) as events:
            async for event in events:
                if not self._is_settled:
                    if isinstance(event, Finished) and _has_nothing_there(event.error):
                        # Nothing is at the address at all: the first answer says what to correct.
                        yield refusal
                        return
                    self._model, self._is_settled = chat, True
                    self._remember()
                    message = f"{self._address} has no Responses API: from now on chat completions are used there."
                    yield RetryScheduled(0, message, now_ms())
                yield event

    def _remember(self) -> None:
        if self._file is None:
            return
        addresses = dict.fromkeys([*_read_addresses(self._file), self._address])
        # Else it is found out again.
        with suppress(OSError):
            create_private_folder(self._file.parent)
            write_atomically(self._file, "".join(f"{each}\n" for each in addresses).encode())


def offer_chat(
    responses: ChatModel,
    chat_adapter: Callable[[ModelInfo, Endpoint, Quirks], ChatModel],
    endpoint: Endpoint,
    cache: Path | None,
) -> ResponsesOrChat:
    """Wrap a model at a configured address. `cache`: the folder for what is known of addresses."""
    info = replace(responses.info, protocol="openai-chat")
    return ResponsesOrChat(
        responses,
        lambda: chat_adapter(info, endpoint, find_quirks(info)),
        redact_url(endpoint.base_url),
        None if cache is None else cache / _FILE_NAME,
    )


def _has_nothing_there(error: MessageError | None) -> bool:
    """Return whether a request failed because its path is not there,
    and not because its model is unknown there.
    """
    if not isinstance(error, APIError) or error.data.status_code not in {404, 405}:
        return False
    return (error.data.metadata or {}).get("kind") != "model"


def _read_addresses(file: Path) -> list[str]:
    return read_start_or_empty(file, _MAX_FILE_BYTES).decode("utf-8", "replace").split("\n")[:-1]
