"""The document says what the server does: each operation, its fields, its answers,
under the contract's names.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_CREATE, SESSION_LIST
from codeloop.server.application import make_operation_routes
from codeloop.server.openapi.document import make_document
from codeloop.server.openapi.operations import ALL_OPERATIONS, VERSION2_IDS
from tests.server.support.serving import served

DOCUMENT: dict[str, Any] = msgspec.json.decode(make_document())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
STREAMS = {"event.subscribe", "global.event", "pty.connect", "v2.event.subscribe", "v2.pty.connect"}


def operation(path: str, method: str) -> dict[str, Any]:
    return DOCUMENT["paths"][path][method]


def body(path: str, method: str = "post") -> dict[str, Any]:
    return operation(path, method)["requestBody"]["content"]["application/json"]["schema"]


def answer(path: str, method: str = "get") -> dict[str, Any]:
    return operation(path, method)["responses"]["200"]["content"]["application/json"]["schema"]


def names(path: str, method: str, place: str) -> set[str]:
    return {
        each["name"] for each in operation(path, method)["parameters"] if each.get("in") == place
    }


def test_every_operation_of_the_table_is_in_it_and_nothing_else() -> None:
    written = {
        (each["operationId"], method.upper(), path)
        for path, methods in DOCUMENT["paths"].items()
        for method, each in methods.items()
    }
    table = {(row.id, row.method, row.path) for row in ALL_OPERATIONS}
    assert table <= written
    assert {name for name, _, _ in written - table} == STREAMS


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    refs = set(re.findall(r'"#/components/(\w+)/([^"]+)"', make_document().decode()))
    there = {(kind, name) for kind, members in DOCUMENT["components"].items() for name in members}
    assert refs == {(kind, name) for kind, name in there if kind != "securitySchemes"}


def test_a_fixed_value_has_a_type_too() -> None:
    assert SCHEMAS["McpAuthRemoved"]["properties"]["success"] == {"type": "boolean", "enum": [True]}


def test_fields_stand_where_the_server_reads_them() -> None:
    assert names("/session/{sessionID}/message", "get", "path") == {"sessionID"}
    assert names("/session/{sessionID}/message", "get", "query") == {"limit", "before"}
    assert body("/session/{sessionID}/message")["required"] == ["parts"]
    assert "sessionID" not in body("/session/{sessionID}/message")["properties"]
    assert body("/auth/{providerID}", "put") == {"$ref": "#/components/schemas/Auth"}
    assert operation("/session", "post")["requestBody"]["required"] is False
    assert "requestBody" not in operation("/session/{sessionID}/abort", "post")


def test_a_directory_can_be_named_once_wherever_a_project_answers() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, each in methods.items():
            own = [parameter.get("name") for parameter in each["parameters"]]
            shared = [
                parameter["$ref"].rpartition("/")[2]
                for parameter in each["parameters"]
                if "$ref" in parameter
            ]
            places = own.count("directory") + shared.count("directory") + shared.count("location")
            process = path in {
                "/global/health",
                "/global/event",
                "/global/dispose",
                "/instance/dispose",
                "/api/event",
            }
            assert places == (0 if process else 1), (method, path)


def test_absent_is_null_in_requests_only() -> None:
    title = body("/session")["properties"]["title"]
    assert title == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert SCHEMAS["Session"]["properties"]["parentID"] == {"type": "string"}
    assert "parentID" not in SCHEMAS["Session"]["required"]


def test_what_is_the_same_thing_has_the_contracts_name() -> None:
    assert answer("/project/current") == {"$ref": "#/components/schemas/Project"}
    assert answer("/path") == {"$ref": "#/components/schemas/Path"}
    assert answer("/session/status")["additionalProperties"] == {
        "$ref": "#/components/schemas/SessionStatus"
    }
    assert SCHEMAS["ToolPart"]["properties"]["state"] == {"$ref": "#/components/schemas/ToolState"}
    assert {
        "EventSessionIdle",
        "EventMessagePartDelta",
        "EventTuiToastShow",
        "Part",
        "Message",
    } <= SCHEMAS.keys()
    assert [name for name in SCHEMAS if "." in name] == []


def test_errors_are_told_with_their_shapes() -> None:
    errors = operation("/session/{sessionID}/message/{messageID}", "delete")["responses"]
    assert {"200", "400", "401", "403", "404", "409", "421", "429", "500"} == set(errors)
    assert "413" in operation("/session", "post")["responses"]
    missing = operation("/pty/{ptyID}", "get")["responses"]["404"]["content"]["application/json"][
        "schema"
    ]
    assert missing == {"$ref": "#/components/schemas/PtyNotFoundError"}


def test_no_operation_that_can_be_asked_for_is_without_a_description() -> None:
    silent = [
        each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()
    ]
    assert [each for each in silent if not each] == []
    for methods in DOCUMENT["paths"].values():
        assert all(each["description"] for each in methods.values())


async def test_the_server_answers_with_it(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        response = await it.http.get("/doc")
        assert response.headers["content-type"] == "application/json"
        assert response.content == make_document()
        names = {getattr(route, "name", "") for route in make_operation_routes(it.app)}
        assert {row.id for row in ALL_OPERATIONS} - VERSION2_IDS <= names


async def test_real_answers_hold_what_it_calls_required(tmp_path: Path) -> None:
    async with served(tmp_path, [ScriptedAnswer(text="Hello.")]) as it:
        session = await it.post(SESSION_CREATE.path)
        await it.prompt(session["id"])
        listed = (await it.get(SESSION_LIST.path))[0]
        message = (await it.get(f"/session/{session['id']}/message"))[-1]
        for schema, value in [
            ("Session", listed),
            ("MessageWithParts", message),
            ("AssistantMessage", message["info"]),
            ("TextPart", message["parts"][1]),
        ]:
            assert (
                set(SCHEMAS[schema]["required"])
                <= value.keys()
                <= SCHEMAS[schema]["properties"].keys()
            )
