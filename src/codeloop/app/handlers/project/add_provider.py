"""Handlers that add a user's model server as a provider: list its models,
and write it into the configuration.
"""

import asyncio
import re

from codeloop.app.project import Project
from codeloop.config.file_entries import choose_entry_file, write_entry
from codeloop.model.base_url import parse_origin, redact_url
from codeloop.model.catalog.server_models import request_server_models
from codeloop.model.credentials.store import is_valid_key
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.api.providers import AddProvider, ServerAddress, ServerModels
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.wire import JSON

_PROVIDER_ID = r"[a-z0-9][a-z0-9._-]{0,63}"
_MAX_MODEL_NAME_CHARS = 200


async def list_models(_project: Project, args: ServerAddress) -> ServerModels:
    """Return the models of a server. Raises OperationError for an invalid address,
    or when no server answers.
    """
    _check_key(args.key)
    try:
        models = await request_server_models(args.base_url.strip(), args.key)
    except ModelUnavailable as error:
        raise OperationError("BadRequest", str(error)) from error
    return ServerModels(
        base_url=models.base_url, models=list(models.models), needs_key=models.needs_key
    )


async def add_provider(project: Project, args: AddProvider) -> bool:
    """Add a server to the user's configuration, and store its key;
    both apply from the next request on.

    Raises OperationError: an invalid address, name, model or key, a provider of this name,
    or an unwritable file.
    """
    entry = _make_entry(args)
    if any(provider.id == args.provider_id for provider in project.providers.list_all()):
        raise OperationError(
            "BadRequest", f"There is a provider `{args.provider_id}` already. Choose another name."
        )
    file = choose_entry_file(project.settings.paths, None)
    try:
        # The key first: if it can't be stored, the configuration is not changed.
        if args.key:
            await asyncio.to_thread(
                project.providers.credentials.store_key, args.provider_id, args.key, args.base_url
            )
        await asyncio.to_thread(write_entry, file, "provider", args.provider_id, entry)
    except CodeloopError as error:
        raise OperationError("BadRequest", str(error)) from error
    if project.reload is not None:
        await project.reload()
    return True


def _make_entry(args: AddProvider) -> JSON:
    """Return the entry for the configuration. Raises OperationError for invalid values."""
    _check_key(args.key)
    if not re.fullmatch(_PROVIDER_ID, args.provider_id):
        raise OperationError(
            "BadRequest",
            "A provider's name may contain lower-case letters, digits, dots, underscores and hyphens.",
        )
    if not args.models or any(
        not each.isprintable() or not 0 < len(each) <= _MAX_MODEL_NAME_CHARS for each in args.models
    ):
        raise OperationError("BadRequest", "Name at least one model, on one line each.")
    try:
        # This only checks it.
        parse_origin(args.base_url)
    except ModelUnavailable as error:
        raise OperationError("BadRequest", str(error)) from error
    # A password in the address would be readable in the configuration file.
    address = redact_url(args.base_url).rstrip("/")
    return {
        "name": args.name,
        "options": {"baseURL": address},
        "models": {model: {} for model in args.models},
    }


def _check_key(key: str) -> None:
    if key and not is_valid_key(key):
        raise OperationError(
            "BadRequest",
            "That is not a valid key. A key is one word of printable ASCII characters.",
        )
