"""Others' programs check our document, and check our server against it."""

import base64
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from codeloop.server.openapi.document import make_document
from tests.interop.stage import PASSWORD, Stage, make_checker_environment, open_stage, run_server

pytestmark = pytest.mark.interop

SEEDS = os.environ.get("CODELOOP_FUZZ_SEEDS", "").split()
SECONDS = int(os.environ.get("CODELOOP_FUZZ_SECONDS", "300"))
"""With seeds, a run goes on for so long from each;
without, one run does the same work every time.
"""
NOT_RUN = {
    "instance.dispose": "ends what all other requests are about",
    "global.dispose": "ends what all other requests are about",
    "pty.create": "would start whatever program is made up, as often as it is asked",
    "session.shell": "would run whatever command is made up",
    "v2.pty.create": "as pty.create",
    "v2.session.wait": "waits for the end of a turn, which other requests begin",
    "worktree.create": "would run whatever start command is made up",
}
NOT_BY_SHAPE = {
    "auth.set": "only keys are stored",
    "config.update": "a setting must be one that there is",
    "event.subscribe": "a position must be one that was given out",
    "file.list": "a path may lead out of the project",
    "file.read": "a path may lead out of the project, or to a folder",
    "find.text": "a text may be no regular expression",
    "global.event": "a position must be one that was given out",
    "mcp.add": "a definition must make sense",
    "part.update": "the ids in the body must be those of the path",
    "permission.respond": "the question must be open",
    "provider.add": "the address must be one, and a model named",
    "provider.oauth.authorize": "a method must be one that there is",
    "provider.models": "a server must answer at the address",
    "pty.connect": "answers WebSockets only",
    "pty.update": "a title may be too long",
    "session.command": "the command and the model must be there",
    "session.create": "the model must be there",
    "session.import": "the import reads what other programs have written, and says what does not fit",
    "session.init": "the model must be there",
    "session.messages": "a cursor must be one that was given out",
    "session.prompt": "the model must be there; ids of a client's own must look like ids",
    "session.prompt_async": "as session.prompt",
    "session.search": "spaces alone are nothing to look for",
    "session.share": "sharing is not offered",
    "session.summarize": "the model must be there",
    "session.undoFiles": "a file must be in the work tree",
    "session.unshare": "sharing is not offered",
    "session.update": "a title must hold more than spaces",
    "tool.list": "the model must be there",
    "vcs.diff": "there may be no branch to compare with",
    **dict.fromkeys(
        (
            *(
                "experimental.console.switchOrg",
                "experimental.controlPlane.moveSession",
                "experimental.workspace.create",
            ),
            *(
                "experimental.workspace.remove",
                "experimental.workspace.warp",
                "sync.history.list",
                "sync.replay",
            ),
            *(
                "sync.steal",
                "tui.control.next",
                "tui.control.response",
                "v2.credential.update",
                "v2.session.events",
            ),
            *(
                "v2.integration.attempt.cancel",
                "v2.integration.attempt.complete",
                "v2.integration.attempt.status",
            ),
            *("v2.integration.connect.oauth", "v2.session.history", "v2.session.permission.create"),
        ),
        "it is not offered",
    ),
    "global.config.update": "as config.update",
    "v2.event.subscribe": "as global.event",
    "v2.fs.list": "as file.list",
    "v2.fs.read": "as file.read",
    "v2.projectCopy.create": "the strategy and the path must be ones that there are",
    "v2.projectCopy.remove": "the folder must be a copy",
    "v2.pty.connect": "as pty.connect",
    "v2.pty.update": "as pty.update",
    "v2.session.compact": "something must have been said",
    "v2.session.create": "as session.create",
    "v2.session.list": "a cursor must be one that was given out",
    "v2.session.messages": "as session.messages",
    "v2.session.prompt": "as session.prompt",
    "v2.session.revert.stage": "files go back along with what was said",
    "v2.session.switchModel": "as session.create",
    "vcs.apply": "a patch must fit",
    "worktree.remove": "the folder must be a work tree that was made here",
    "worktree.reset": "as worktree.remove",
}
"""Operations that may answer 400 to what fits the schema, since more than the shape decides."""


def settings(stage: Stage, url: str) -> str:
    """Return what schemathesis is told: all checks, the credential, names of what is there,
    our directory only.
    """
    directory = json.dumps(str(stage.project))
    there = known(url)
    parameters = "\n".join(
        f'"path.{name}" = {{ dictionary = "{name}", probability = 0.7 }}' for name in there
    )
    dictionaries = "\n".join(
        f"[dictionaries.{name}]\nvalues = {json.dumps(values)}" for name, values in there.items()
    )
    return f"""
base-url = "{url}"
continue-on-failure = true
max-stream-events = 1
request-timeout = 120.0
suppress-health-check = ["all"]

[auth.openapi]
basic = {{ username = "opencode", password = "{PASSWORD}" }}

[parameters]
{parameters}
"query.directory" = {directory}
"query.location[directory]" = {directory}
"header.X-OpenCode-Ticket" = "1"

{dictionaries}

[generation]
database = "none"
with-security-parameters = false

[[operations]]
include-operation-id = {json.dumps(list(NOT_RUN))}
enabled = false

[[operations]]
include-operation-id = {json.dumps(list(NOT_BY_SHAPE))}
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "403", "404", "409"]

# Version 2 answers 400 to all that can't be done.
[[operations]]
include-operation-id-regex = "^v2\\\\."
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "403", "404", "409"]

# What stands there is the schema of an event's data, as makers of clients read it; the check wants that of the frame.
[[operations]]
include-operation-id = ["event.subscribe", "global.event", "v2.event.subscribe", "v2.session.log"]
checks.response_schema_conformance.enabled = false
"""


def known(url: str) -> dict[str, list[str]]:
    """Make a conversation and a terminal; return their ids by the names
    that paths have for them.
    """
    session = asked(url, "/session", {})["id"]
    message = asked(
        url, f"/session/{session}/message", {"parts": [{"type": "text", "text": "hello"}]}
    )
    terminal = asked(url, "/pty", {"command": "cat"})
    return {
        "sessionID": [session],
        "messageID": [message["info"]["id"], message["info"]["parentID"]],
        "partID": [part["id"] for part in message["parts"]],
        "ptyID": [terminal["id"]],
        "projectID": [asked(url, "/project/current")["id"]],
        "providerID": ["mine"],
    }


def asked(url: str, path: str, body: Any = None) -> Any:
    """GET, or POST a body, and return the answer."""
    credential = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
    headers = {"authorization": f"Basic {credential}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}{path}", data, headers)) as response:
        return json.load(response)


def test_the_document_is_valid(tmp_path: Path) -> None:
    tool = make_checker_environment() / "openapi-spec-validator"
    with open_stage(tmp_path) as stage:
        path = tmp_path / "document.json"
        path.write_bytes(make_document())
        done = stage.ask([str(tool), "--schema", "3.1", "--validation-errors", "all", str(path)])
    assert done.returncode == 0, done.stdout


def runs() -> Iterator[tuple[str, list[str]]]:
    """Yield a name and what schemathesis is to do, each for a server of its own."""
    credential = "ignored_auth"
    for seed in SEEDS:
        yield (
            f"seed {seed}",
            ["--seed", seed, "--max-time", str(SECONDS), "--exclude-checks", credential],
        )
    if not SEEDS:
        # Chained requests follow ids that the server draws,
        # so no two runs of them are the same: they need seeds.
        usual = [
            "--generation-deterministic",
            "--max-examples",
            "5",
            "--phases",
            "examples,coverage,fuzzing",
        ]
        yield "all but the credential", [*usual, "--exclude-checks", credential]
    # A wrong password is made to wait: so the check that tries one has a run of its own,
    # with one try an operation.
    once = [
        "--generation-deterministic",
        "--max-examples",
        "1",
        "--phases",
        "fuzzing",
        "--workers",
        "4",
    ]
    some = [] if SEEDS else ["--include-method", "POST"]
    yield "the credential", [*once, *some, "--checks", credential]


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in runs()])
def test_the_server_keeps_to_it_whatever_is_asked(words: list[str], tmp_path: Path) -> None:
    tool = make_checker_environment() / "schemathesis"
    with ExitStack() as ends:
        stage = ends.enter_context(open_stage(tmp_path))
        # A question would wait for a person.
        stage.configure(stage.config | {"permission": {"bash": "allow"}})
        url = ends.enter_context(run_server(stage))
        (tmp_path / "document.json").write_bytes(make_document())
        (tmp_path / "schemathesis.toml").write_text(settings(stage, url))
        command = [
            str(tool),
            "--config-file",
            "schemathesis.toml",
            "run",
            "document.json",
            "--no-color",
        ]
        done = stage.ask([*command, *words], cwd=tmp_path, timeout=900 + 2 * SECONDS)
        log = stage.folder / "home" / "codeloop" / "data" / "log" / "server.log"
        unforeseen = (
            [line for line in log.read_text().splitlines() if "Traceback" in line]
            if log.exists()
            else []
        )
    assert (done.returncode, unforeseen) == (0, []), done.stdout
