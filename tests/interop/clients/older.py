"""The reference's package for Python, of an older contract: which of its calls work,
a line for each.
"""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

package: Any = import_module("opencode_ai")  # only in the environment of this script
headers = {"Authorization": f"Bearer {os.environ['PASSWORD']}"}
client = package.Opencode(
    base_url=os.environ["BASE_URL"], default_headers=headers, max_retries=0, timeout=120
)


def attempt(name: str, call: Callable[[], object]) -> None:
    """Print whether a call works, or the status that it is refused with."""
    try:
        call()
    except package.APIStatusError as error:
        print(name, error.status_code)
    else:
        print(name, "ok")


def first_event() -> None:
    """Read the first event of the stream."""
    with client.event.list() as stream:
        assert next(iter(stream)).type == "server.connected"


def chat() -> None:
    """Say something; the answer is a message with its parts, which this package has no type for."""
    model = {"providerID": "mine", "modelID": "talker"}
    said = client.session.chat(
        session.id,
        model_id="talker",
        provider_id="mine",
        parts=[{"type": "text", "text": "say hello"}],
        extra_body={"model": model},
    )
    info = said.to_dict()["info"]
    assert isinstance(info, dict)
    assert info["modelID"] == "talker", info
    assert [each.parts[-1].type for each in client.session.messages(session.id)] == [
        "text",
        "step-finish",
    ]


session = client.session.create()
attempt("app.get", client.app.get)
attempt("app.init", client.app.init)
attempt("app.modes", client.app.modes)
attempt("app.providers", client.app.providers)
attempt("app.log", lambda: client.app.log(level="info", message="hello", service="older"))
attempt("config.get", client.config.get)
attempt("event.list", first_event)
attempt("file.read", lambda: client.file.read(path="src/main.py"))
attempt("file.status", client.file.status)
attempt("find.files", lambda: client.find.files(query="main"))
attempt("find.text", lambda: client.find.text(pattern="interop"))
attempt("find.symbols", lambda: client.find.symbols(query="main"))
attempt("session.list", client.session.list)
attempt("session.chat", chat)
attempt("session.messages", lambda: client.session.messages(session.id))
attempt("session.abort", lambda: client.session.abort(session.id))
attempt("session.share", lambda: client.session.share(session.id))
attempt("session.delete", lambda: client.session.delete(session.id))
