"""`@ai-sdk/openai` at an address of one's own means Responses;
where that is not there, chat completions, said once.
"""

from pathlib import Path

import pytest

from tests.cli.program import KEY, Desk, serving
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import ModelServer


def use(desk: Desk, server: ModelServer) -> None:
    options = {"baseURL": server.url, "apiKey": KEY}
    models = {"m": {"limit": {"context": 200_000, "output": 8_000}}}
    provider = {"npm": "@ai-sdk/openai", "options": options, "models": models}
    desk.configure(provider={"own": provider}, model="own/m")


def list_paths(server: ModelServer) -> list[str]:
    return [received.path for received in server.requests]


def test_requests_go_to_responses(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="Hello.")]) as server:
        use(desk, server)
        done = desk.run("run", "--title", "T", "hi")
        assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
        assert set(list_paths(server)) == {"/v1/responses"}
        assert "chat completions" not in done.stderr


@pytest.mark.parametrize("status", [404, 405])
def test_where_responses_are_not_there_chat_completions_are_used_remembered_and_said_once(
    tmp_path: Path, status: int
) -> None:
    def answer(received: ReceivedRequest) -> Answer:
        return (
            Answer(text="Hello.")
            if "chat" in received.path
            else Answer(status=status, body="404 page not found")
        )

    desk = Desk(tmp_path)
    with serving(answer) as server:
        use(desk, server)
        first = desk.run("run", "--title", "T", "hi")
        assert (first.returncode, first.stdout) == (0, "Hello.\n"), first.stderr
        assert (
            first.stderr.count("has no Responses API: from now on chat completions are used there.")
            == 1
        )
        assert list_paths(server)[:2] == ["/v1/responses", "/v1/chat/completions"]
        server.requests.clear()
        second = desk.run("run", "--title", "T", "hi")
        assert (second.returncode, second.stdout) == (0, "Hello.\n"), second.stderr
        assert "Responses" not in second.stderr
        assert set(list_paths(server)) == {"/v1/chat/completions"}


def test_where_neither_is_there_the_address_is_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(status=404, body="404 page not found")]) as server:
        use(desk, server)
        failed = desk.run("run", "--title", "T", "hi")
        assert failed.returncode == 3
        assert "own has nothing at" in failed.stderr
        assert "/v1/responses" in failed.stderr
        assert not (desk.home / "cache" / "chat-addresses").exists()
