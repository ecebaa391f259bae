"""`GET /doc`: the OpenAPI 3.1 document of everything that the server answers,
made from the operation table.
"""

import functools
import re

import msgspec

from codeloop.kit.version import RELEASE
from codeloop.schema.operation import AnyOperation
from codeloop.server.openapi.errors import ERROR_RESPONSES, ERROR_SCHEMAS, describe_failures
from codeloop.server.openapi.operations import ALL_OPERATIONS, VERSION2_IDS
from codeloop.server.openapi.schemas import Schema, make_component_reference, make_schemas
from codeloop.server.operations import MEDIA_TYPES
from codeloop.server.version2.rows import ANSWER_WRAPS, LIST_OPERATIONS

_DESCRIPTION = (
    "An open coding agent: its sessions, files, permissions and terminals over HTTP. "
    "Events come as a stream."
)
_SECURITY: dict[str, Schema] = {
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The server's user name and password.",
    },
    "bearer": {"type": "http", "scheme": "bearer", "description": "The server's password."},
    "token": {
        "type": "apiKey",
        "in": "query",
        "name": "auth_token",
        "description": "`user:password` in base64, for what can send no header.",
    },
}
_STRING: Schema = {"type": "string"}
_PARAMETERS: dict[str, Schema] = {
    "directory": {
        "name": "directory",
        "in": "query",
        "schema": _STRING,
        "description": "The project's directory, absolute or relative to the server's; without it the server's own.",
    },
    "workspace": {
        "name": "workspace",
        "in": "query",
        "schema": _STRING,
        "description": "Has no effect: a directory has one workspace.",
    },
    "location": {
        "name": "location[directory]",
        "in": "query",
        "schema": _STRING,
        "description": "As `directory`.",
    },
    "lastEventID": {
        "name": "Last-Event-ID",
        "in": "header",
        "schema": _STRING,
        "description": "The `id` of the last event that was seen; what came after it is sent again.",
    },
}
_GLOBAL_EVENT: Schema = {
    "type": "object",
    "description": "An event with its directory and project; events of the server itself have neither.",
    "properties": {
        "directory": _STRING,
        "project": _STRING,
        "payload": make_component_reference("Event"),
    },
    "required": ["payload"],
}

_EVENT_2: Schema = {
    "type": "object",
    "description": "Version 2: an event with its properties under `data`, and its directory under `location`.",
    "properties": {
        "id": _STRING,
        "type": _STRING,
        "data": {"type": "object"},
        "location": {"type": "object"},
    },
    "required": ["id", "type", "data"],
}


@functools.cache
def make_document() -> bytes:
    """Return the document as JSON; it is made when it is first requested."""
    schemas = make_schemas(
        [row.takes for row in ALL_OPERATIONS], [row.gives for row in ALL_OPERATIONS]
    )
    # Arguments become parameters and bodies, so the document has no use for them as components.
    argument_names = {row.takes.__name__ for row in ALL_OPERATIONS}
    components = {
        name: schema for name, schema in schemas.components.items() if name not in argument_names
    }
    paths: dict[str, Schema] = {}
    for row, answer_schema in zip(ALL_OPERATIONS, schemas.answers, strict=True):
        arguments_schema = schemas.components[row.takes.__name__]
        paths.setdefault(row.path, {})[row.method.lower()] = _describe_row(
            row, arguments_schema, answer_schema
        )
    for path, operation in _describe_streams().items():
        paths.setdefault(path, {})["get"] = operation
    document: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "codeloop",
            "version": RELEASE,
            "description": _DESCRIPTION,
            "license": {"name": "MIT"},
        },
        "security": [{name: []} for name in _SECURITY],
        "paths": paths,
        "components": {
            "schemas": components
            | ERROR_SCHEMAS
            | {"GlobalEvent": _GLOBAL_EVENT, "Event2": _EVENT_2},
            "parameters": _PARAMETERS,
            "responses": ERROR_RESPONSES,
            "securitySchemes": _SECURITY,
        },
    }
    return msgspec.json.encode(document)


def _describe_row(row: AnyOperation, arguments_schema: Schema, answer_schema: Schema) -> Schema:
    """Return the description of an operation. Fields that are not in its path are in
    its body or else its query.
    """
    in_path = re.findall(r"\{(\w+)\}", row.path)
    fields: dict[str, Schema] = arguments_schema.get("properties", {})
    required_names: list[str] = arguments_schema.get("required", [])
    other_fields = {name: schema for name, schema in fields.items() if name not in in_path}
    parameters = [
        _describe_parameter(name, "path", fields[name], required=True) for name in in_path
    ]
    if row.path.endswith("/connect-token"):
        parameters.append(
            _describe_parameter(
                "X-OpenCode-Ticket", "header", {"type": "string", "enum": ["1"]}, required=True
            )
        )
    operation = _describe_operation(row.id, arguments_schema["description"])
    if not row.takes_body:
        parameters += [
            _describe_parameter(name, "query", schema, required=name in required_names)
            for name, schema in other_fields.items()
        ]
    elif row.body is not None:
        (body,) = other_fields.values()
        # A request without a body counts as one with an empty object.
        operation["requestBody"] = _describe_json_body(body, required=body != {"type": "object"})
    elif other_fields:
        required = [name for name in required_names if name in other_fields]
        body = {
            "type": "object",
            "properties": other_fields,
            **({"required": required} if required else {}),
        }
        operation["requestBody"] = _describe_json_body(body, required=bool(required))
    return operation | {
        "parameters": parameters + _list_project_parameters(row, other_fields),
        "responses": _describe_answer(row, answer_schema)
        | describe_failures(row.path, row.method, names_things=bool(other_fields)),
    }


def _describe_operation(operation_id: str, description: str) -> Schema:
    return {
        "tags": [operation_id.partition(".")[0]],
        "operationId": operation_id,
        "description": description,
    }


def _describe_answer(row: AnyOperation, schema: Schema) -> Schema:
    if row.gives is type(None):
        return {"204": {"description": "The request is accepted."}}
    if row.id in VERSION2_IDS:
        schema = _wrap_answer(row.id)
    kind = MEDIA_TYPES.get(row.id, "application/json").partition(";")[0]
    if kind == "application/octet-stream":
        schema = {"type": "string", "contentMediaType": kind}
    return {"200": {"description": "The answer.", "content": {kind: {"schema": schema}}}}


def _wrap_answer(operation_id: str) -> Schema:
    """Return the schema of an answer of version 2: what it is wrapped in, and whether it is a list.

    What is in it is described by the contract of version 2.
    """
    data: Schema = {"type": "array", "items": {}} if operation_id in LIST_OPERATIONS else {}
    match ANSWER_WRAPS[operation_id]:
        case "data":
            return {"type": "object", "properties": {"data": data}, "required": ["data"]}
        case "located":
            fields = {"location": make_component_reference("LocationInfo"), "data": data}
            return {"type": "object", "properties": fields, "required": list(fields)}
        case _:
            return data


def _describe_streams() -> dict[str, Schema]:
    """Describe the routes that are not in the table, all GET: streams of events and terminals,
    by path.
    """
    resume_parameters = [
        _make_reference("parameters", "lastEventID"),
        _describe_parameter("after", "query", _STRING, required=False),
    ]
    project_parameters = [
        _make_reference("parameters", name) for name in ("directory", "workspace")
    ]
    terminal_parameters = [_describe_parameter("ptyID", "path", _STRING, required=True)]
    terminal_parameters += [
        _describe_parameter(name, "query", _STRING, required=False) for name in ("cursor", "ticket")
    ]
    return {
        "/event": _describe_operation("event.subscribe", "Events of one directory, as they happen.")
        | {
            "parameters": resume_parameters + project_parameters,
            "responses": _describe_stream("Event") | describe_failures("/event", "GET"),
        },
        "/global/event": _describe_operation(
            "global.event", "Events of every directory, as they happen."
        )
        | {
            "parameters": resume_parameters,
            "responses": _describe_stream("GlobalEvent")
            | describe_failures("/global/event", "GET"),
        },
        "/api/event": _describe_operation(
            "v2.event.subscribe", "Version 2: events of every directory, as they happen."
        )
        | {
            "parameters": resume_parameters,
            "responses": _describe_stream("Event2") | describe_failures("/api/event", "GET"),
        },
        "/api/pty/{ptyID}/connect": _describe_operation(
            "v2.pty.connect", "Version 2: a WebSocket to a terminal, as /pty/{ptyID}/connect."
        )
        | {
            "parameters": [
                *terminal_parameters,
                *(_make_reference("parameters", name) for name in ("location", "workspace")),
            ],
            "responses": _describe_upgrade() | describe_failures("/api/pty/{ptyID}/connect", "GET"),
        },
        "/pty/{ptyID}/connect": _describe_operation(
            "pty.connect", "A WebSocket to a terminal: its output, then its input as typed."
        )
        | {
            "parameters": terminal_parameters + project_parameters,
            "responses": _describe_upgrade() | describe_failures("/pty/{ptyID}/connect", "GET"),
        },
    }


def _describe_stream(schema: str) -> Schema:
    description = "Each event is one line `data: JSON`."
    return {
        "200": {
            "description": description,
            "content": {"text/event-stream": {"schema": make_component_reference(schema)}},
        },
        "503": _make_reference("responses", "TooManyStreams"),
    }


def _describe_upgrade() -> Schema:
    return {"101": {"description": "The connection is a WebSocket from here on."}}


def _describe_parameter(name: str, location: str, schema: Schema, *, required: bool) -> Schema:
    """Return a parameter. A query can only leave a parameter out,
    so the schema does not allow null.
    """
    match schema:
        case {"anyOf": [only, {"type": "null"}]}:
            schema = only
        case _:
            pass
    return {"name": name, "in": location, "required": required, "schema": schema}


def _list_project_parameters(row: AnyOperation, fields: Schema) -> list[Schema]:
    """Return the parameters that choose the project."""
    if row.scope == "process":
        return []
    names = (
        ["location", "workspace"] if row.path.startswith("/api/") else ["directory", "workspace"]
    )
    if "directory" in fields and not row.takes_body:
        names = ["workspace"]
    return [_make_reference("parameters", name) for name in names]


def _make_reference(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def _describe_json_body(schema: Schema, *, required: bool) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": schema}}}
