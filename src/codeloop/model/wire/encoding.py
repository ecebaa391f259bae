"""Encodes parts of requests in the ways that several protocols share: messages of blocks, JSON,
options, names, ids.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import ModelInfo, ModelRequest
from codeloop.model.quirks import Quirks
from codeloop.schema.wire import JSON

RESERVED_FIELDS = frozenset({"messages", "stream", "system", "tools", "model"})
"""Body fields that options never change; the `body` of a request may."""


class EncodedMessage(NamedTuple):
    """A message that consists of blocks: its role, the JSON of each block,
    and that of the message (`body`).
    """

    role: str
    blocks: list[bytes]
    body: bytes


def join_blocks(role: str, blocks: list[bytes]) -> EncodedMessage:
    """Return the message that consists of encoded blocks."""
    return EncodedMessage(
        role, blocks, b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))
    )


def merge_successive(messages: Iterable[EncodedMessage]) -> list[EncodedMessage]:
    """Join successive messages of one role, for services that want the roles to alternate;
    empty ones are left out.
    """
    merged: list[EncodedMessage] = []
    for message in messages:
        if not message.blocks:
            continue
        if merged and merged[-1].role == message.role:
            merged[-1] = join_blocks(message.role, merged[-1].blocks + message.blocks)
        else:
            merged.append(message)
    return merged


def collect_options(info: ModelInfo, request: ModelRequest, quirks: Quirks) -> JSON:
    """Return the options of model and request as body fields: in the protocol's names,
    without reserved ones.

    They are sorted, so that equal options give equal bytes: prompt caches of services
    compare from the first byte on.
    """
    fields = {
        **_rename_keys(info.options, quirks.option_names),
        **_rename_keys(request.options, quirks.option_names),
    }
    return {name: fields[name] for name in sorted(fields) if name not in RESERVED_FIELDS}


def merge_body(head: JSON, request: ModelRequest) -> JSON:
    """Merge the request's `body` (fields in the protocol's own names) into the head of a body,
    objects key by key.

    The head: all fields except the messages, which are encoded on their own.
    """
    fields = {**head}
    for name, value in request.body.items():
        field = fields.get(name)
        fields[name] = {**field, **value} if is_object(field) and is_object(value) else value
    return fields


def _rename_keys(options: Mapping[str, Any], names: Mapping[str, str]) -> JSON:
    return {
        names.get(name, name): _rename_keys(value, names) if is_object(value) else value
        for name, value in options.items()
    }


def sanitize_tool_name(name: str) -> str:
    """Return a tool's name in at most 64 characters that every service accepts.

    Names of ours are fine as they are, but models also call tools that don't exist,
    and such calls are sent back.
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def sanitize_call_id(call_id: str, length: int = 0) -> str:
    """Return an id that the service accepts: letters, digits, `_` and `-`,
    or exactly `length` letters and digits.
    """
    if not length:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "call"
    if len(call_id) == length and call_id.isalnum():
        return call_id
    # Imported here: it is rarely needed.
    from hashlib import sha256

    # A hash, since a call and its result must get the same id.
    return sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]
