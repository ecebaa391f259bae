"""The files that a server asks to be told about."""

from pathlib import Path

import pytest

from codeloop.lsp.client.registrations import Registrations
from codeloop.schema.wire import JSON


def register(watcher: JSON) -> Registrations:
    registrations = Registrations(lambda: None)
    row = {
        "id": "1",
        "method": "workspace/didChangeWatchedFiles",
        "registerOptions": {"watchers": [watcher]},
    }
    registrations.make_handlers([], lambda _: None)["client/registerCapability"](
        {"registrations": [row]}
    )
    return registrations


@pytest.mark.parametrize("folder", ["/home/me/project", "/home/me/my project", "/home/me/größe"])
def test_a_pattern_is_about_the_folder_that_it_is_relative_to(folder: str) -> None:
    uri = Path(folder).as_uri()
    for base in (uri, {"uri": uri, "name": "project"}):
        registrations = register({"globPattern": {"baseUri": base, "pattern": "**/*.x"}})
        assert registrations.is_watched(Path(folder) / "src" / "a.x")
        assert not registrations.is_watched(Path("/elsewhere/a.x"))


def test_a_pattern_without_a_valid_folder_is_left_out() -> None:
    assert not register(
        {"globPattern": {"baseUri": "untitled:1", "pattern": "**/*.x"}}
    ).watches_files
