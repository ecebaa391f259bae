"""Dialogs that add the user's own model server: ask for its address, its key,
its first model and a name.
"""

import re
from collections.abc import Collection, Sequence
from itertools import count
from urllib.parse import urlsplit

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.providers import (
    PROVIDER_ADD,
    PROVIDER_MODELS,
    AddProvider,
    ServerAddress,
    ServerModels,
)
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.message import ModelRef
from codeloop.tui.choices import LOCAL_HOSTS
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker

CUSTOM_SERVER_TITLE = "A server of your own"
_ADDRESS_HINT = """Its base URL, such as http://127.0.0.1:8080/v1. It has to speak the chat completions protocol, as \
llama.cpp, vLLM, LM Studio and most gateways do."""
_UNSUPPORTED_HINT = """This server can't add another one. Write it into its configuration, then start it again:
{"provider": {"mine": {"options": {"baseURL": "http://127.0.0.1:8080/v1"}, "models": {"NAME": {}}}}}"""
_MAX_CONFIGURED_MODELS = 50
"""Models of a server up to which all are written to the configuration;
of more (a gateway), only the chosen one.
"""


class CustomServerSetup:
    """Asks for the data of a server step by step. `taken_ids`: the ids of all
    providers that exist already.
    """

    def __init__(self, context: DialogContext, taken_ids: Collection[str]) -> None:
        self._context = context
        self._taken_ids = taken_ids
        self._key = ""

    async def add_server(self) -> ModelRef | None:
        """Add a server to the configuration and return its first model; None: cancelled."""
        server_models = await self._ask_for_server()
        model = None if server_models is None else await self._ask_for_model(server_models)
        if server_models is None or not model:
            return None
        models = [model]
        if len(server_models.models) <= _MAX_CONFIGURED_MODELS:
            # The chosen one first.
            models = list(dict.fromkeys((model, *server_models.models)))
        name = _make_unique(_suggest_name(server_models.base_url), self._taken_ids)
        explanation = f"A model of it is called NAME/{model}."
        while name := await self._ask("A name for the server", name, explanation):
            # An id such as `my-gateway`, for `My Gateway!`.
            provider_id = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
            request = AddProvider(
                provider_id=provider_id,
                name=name,
                base_url=server_models.base_url,
                models=models,
                key=self._key,
            )
            # The operation checks the name; its error is shown above the next try.
            try:
                await self._context.client.call(PROVIDER_ADD, request)
            except CodeloopError as error:
                explanation = str(error)
            else:
                return ModelRef(provider_id=provider_id, model_id=model)
        return None

    async def _ask_for_server(self) -> ServerModels | None:
        """Ask for an address until a server answers there; return the models that the server lists.
        None: cancelled.
        """
        address, about = "", _ADDRESS_HINT
        while address := await self._ask(CUSTOM_SERVER_TITLE, address, about):
            try:
                return await self._list_models(address)
            except OperationError as error:
                # The UI may be attached to another program with the same API,
                # which may not have this operation.
                about = _UNSUPPORTED_HINT if error.kind == "NotFoundError" else str(error)
        return None

    async def _list_models(self, address: str) -> ServerModels | None:
        """Ask a server for its models, and the user for a key while the server demands one.
        None: cancelled.
        """
        client, about = self._context.client, "The server answers with a key only."
        server_models = await client.call(PROVIDER_MODELS, ServerAddress(base_url=address))
        while server_models.needs_key:
            self._key = await self._ask(
                f"Key for {_find_host(server_models.base_url)}", "", about, is_secret=True
            )
            if not self._key:
                return None
            about = "The server refused that key."
            server_models = await client.call(
                PROVIDER_MODELS, ServerAddress(base_url=server_models.base_url, key=self._key)
            )
        return server_models

    async def _ask_for_model(self, server_models: ServerModels) -> str | None:
        """Ask for the first model: one that the server lists, else by name."""
        if not server_models.models:
            return await self._ask("The name of a model", "", "The server doesn't list its models.")

        async def list_models() -> Sequence[Pick[str]]:
            return [Pick(model, model) for model in server_models.models]

        host = one_line(_find_host(server_models.base_url), 60)
        return await self._context.ask(
            Picker(PickSource(f"Which model of {host}?", list_models), self._context.get_styles)
        )

    async def _ask(self, title: str, text: str, about: str, *, is_secret: bool = False) -> str:
        """Ask for a line and return it; "": it was left empty, or cancelled."""
        line = TextInput(title, self._context.get_styles, text, about=about, is_secret=is_secret)
        return (await self._context.ask(line) or "").strip()


def _find_host(url: str) -> str:
    return urlsplit(url).netloc


def _suggest_name(url: str) -> str:
    """Return a short name for a server."""
    host = urlsplit(url).hostname or ""
    return "local" if host in LOCAL_HOSTS else host


def _make_unique(name: str, taken_names: Collection[str]) -> str:
    """Return a name that is not taken: the name itself, or with a number, from `NAME-2` on."""
    candidates = (f"{name}-{number}" for number in count(2))
    return (
        name
        if name not in taken_names
        else next(each for each in candidates if each not in taken_names)
    )
