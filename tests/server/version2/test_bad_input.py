"""Requests that make no sense are refused with the reason; what is read comes in whole pieces."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.server.support.serving import Served, served


async def test_a_form_is_answered_by_what_fits_it(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        path = f"/api/session/{await it.session()}/form"
        for fields in (
            [{"key": "a", "type": "string", "options": ["x"]}],
            [{"key": "a", "type": "string", "options": 1}],
            [{"key": "a", "type": "string", "when": [1]}],
        ):
            refused = await it.post(path, {"title": "Form", "fields": fields}, 400)
            assert refused["_tag"] == "InvalidRequestError"
        kinds = ("string", "multiselect", "other")
        fields = [{"key": each, "type": each, "options": [{"value": "x"}]} for each in kinds]
        form = (await it.post(path, {"title": "Form", "fields": fields}))["data"]
        assert form["fields"] == fields
        for answer in ({"multiselect": [{}]}, {"multiselect": [["x"]]}, {"other": {"x": 1}}):
            wrong = await it.post(f"{path}/{form['id']}/reply", {"answer": answer}, 400)
            assert wrong["_tag"] == "FormInvalidAnswerError"
        await it.post(f"{path}/{form['id']}/reply", {"answer": {"multiselect": ["x"]}}, 204)


@pytest.mark.parametrize(
    ("info", "messages"),
    [
        ({"permissions": ["x"]}, []),
        ({"permissions": [{"action": "read"}]}, []),
        ({"permissions": [{"action": [], "resource": "*", "effect": "deny"}]}, []),
        ({"permissions": 3}, []),
        ({"location": "x"}, []),
        ({"time": []}, [{"type": "user"}]),
        ({}, [{"type": "user", "id": "msg_1", "time": 1}]),
        ({}, [{"type": "assistant", "id": "msg_1", "time": {"created": 1}, "content": [1]}]),
        ({}, [{"type": "assistant", "id": "msg_1", "time": {"created": 1}, "error": "x"}]),
        ({}, [{"type": "shell", "id": "msg_1"}]),
    ],
)
async def test_what_is_no_exported_session_is_not_imported(
    info: Any, messages: Any, tmp_path: Path
) -> None:
    async with served(tmp_path) as it:
        body = {"info": info, "messages": messages}
        refused = await it.post("/api/experimental/session/import", body, 400)
        assert "not a session" in refused["message"]


@pytest.mark.parametrize("name", ["from", "to"])
async def test_times_of_no_calendar_are_refused(name: str, tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        path = "/api/experimental/session/stats"
        refused = await it.http.get(path, params={name: "1e300"})
        assert (refused.status_code, "1e+300" in refused.text) == (400, True)
        assert (await it.http.get(path, params={name: "Infinity"})).json()["data"]["prompts"] == 0


async def run_shell(it: Served, command: str) -> str:
    """Run a command to its end; return the path of it."""
    path = f"/api/shell/{(await it.post('/api/shell', {'command': command}))['data']['id']}"
    while (await it.get(path))["data"]["status"] == "running":
        await asyncio.sleep(0.01)
    return path


async def test_output_is_read_in_whole_characters(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        path = await run_shell(it, r"printf 'a\342\202\254b\303\274\360\237\220\215c\342'")
        for limit in range(1, 8):
            pieces: list[str] = []
            cursor = 0
            while True:
                read = (await it.get(f"{path}/output", cursor=cursor, limit=limit))["data"]
                pieces.append(read["output"])
                if read["cursor"] == read["size"]:
                    break
                assert read["cursor"] > cursor
                cursor = read["cursor"]
            assert "".join(pieces) == "a\u20acb\u00fc\U0001f40dc\ufffd"


async def test_a_command_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        refused = await it.post("/api/shell", {"command": "true", "cwd": "gone"}, 400)
        assert str(it.work / "gone") in refused["message"]


async def test_a_name_with_marks_of_an_address_is_found(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        (it.work / "what?#1.txt").write_text("text\n")
        read = await it.http.get("/api/fs/read/what%3F%231.txt")
        assert (read.status_code, read.text) == (200, "text\n")
