"""The routes answer in the contract's shapes."""

from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from tests.server.support.serving import served


async def test_a_session_is_made_prompted_and_read_over_http(tmp_path: Path) -> None:
    async with served(tmp_path, [ScriptedAnswer(text="Hello.")]) as it:
        session = await it.post("/session", {"title": "mine"})
        assert session["title"] == "mine"
        answer = await it.prompt(session["id"])
        assert [part["type"] for part in answer["parts"]] == ["step-start", "text", "step-finish"]
        messages = await it.get(f"/session/{session['id']}/message")
        assert [message["info"]["role"] for message in messages] == ["user", "assistant"]


async def test_what_does_not_fit_is_named_by_its_place(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        session_id = await it.session()
        refused = await it.post(f"/session/{session_id}/message", {}, status=400)
        assert refused == {
            "name": "BadRequest",
            "data": {"message": 'Missing key\n  at ["parts"]', "kind": "Payload"},
        }
        assert (await it.get("/nothing", status=404))["name"] == "NotFoundError"


async def test_a_browser_that_shows_an_answer_runs_nothing_of_it(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        title = "<script>alert(1)</script>"
        await it.post("/session", {"title": title})
        response = await it.http.get("/session")
        assert response.json()[0]["title"] == title
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in response.headers["content-security-policy"]
