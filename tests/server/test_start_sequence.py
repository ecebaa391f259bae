"""What a terminal UI of the contract asks for when it starts: every answer has
the form that it counts on.

The forms are written down here once more, in our own words and strictly: a field that is missing,
of another type, or that the contract does not know fails the test.
"""

import json
import subprocess
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import pytest

from codeloop.model.testing.script import ScriptedAnswer
from tests.server.support.serving import Served, served

Anything = dict[str, Any]
WORDS = list[str]


def maybe(kind: Any) -> Any:
    """Return a field that may be left out."""
    return kind | msgspec.UnsetType


def form(**fields: Any) -> Any:
    """Return an object with exactly these fields."""
    optional = {name for name, kind in fields.items() if msgspec.UnsetType in get_args(kind)}
    listed = [
        (name, kind, msgspec.UNSET) if name in optional else (name, kind)
        for name, kind in fields.items()
    ]
    return msgspec.defstruct("Form", listed, forbid_unknown_fields=True, kw_only=True)


PATH = form(home=str, state=str, config=str, worktree=str, directory=str)
PROJECT = form(
    id=str,
    worktree=str,
    time=form(created=int, updated=int, initialized=maybe(int)),
    sandboxes=WORDS,
    vcs=maybe(Literal["git"]),
    name=maybe(str),
)
DIRECTORY = form(directory=str, strategy=maybe(str))
MODES = form(text=bool, audio=bool, image=bool, video=bool, pdf=bool)
MODEL = form(
    id=str,
    providerID=str,
    api=form(id=str, url=str, npm=str),
    name=str,
    family=maybe(str),
    capabilities=form(
        temperature=bool,
        reasoning=bool,
        attachment=bool,
        toolcall=bool,
        input=MODES,
        output=MODES,
        interleaved=bool | form(field=str),
    ),
    cost=form(input=float, output=float, cache=form(read=float, write=float)),
    limit=form(context=float, output=float, input=maybe(float)),
    status=Literal["alpha", "beta", "deprecated", "active"],
    options=Anything,
    headers=dict[str, str],
    release_date=str,
    variants=maybe(dict[str, Anything]),
)
PROVIDER = form(
    id=str,
    name=str,
    source=Literal["env", "config", "custom", "api"],
    env=WORDS,
    options=Anything,
    models=dict[str, MODEL],
    preferredKey=maybe(str),  # ours, where there is such a key; other clients pass over it
)
USABLE = form(providers=list[PROVIDER], default=dict[str, str])
KNOWN = form(all=list[PROVIDER], default=dict[str, str], connected=WORDS)
RULE = form(permission=str, pattern=str, action=Literal["allow", "ask", "deny"])
AGENT = form(
    name=str,
    mode=Literal["primary", "subagent", "all"],
    permission=list[RULE],
    options=Anything,
    description=maybe(str),
    native=maybe(bool),
    hidden=maybe(bool),
    model=maybe(form(modelID=str, providerID=str)),
    variant=maybe(str),
    prompt=maybe(str),
    temperature=maybe(float),
    topP=maybe(float),
    color=maybe(str),
    steps=maybe(int),
)
SETTINGS = form(  # the sections that this test configures, and those that are always there
    username=str,
    mode=Anything,
    plugin=list[Any],
    model=str,
    share=Literal["manual", "auto", "disabled"],
    enabled_providers=WORDS,
    command=dict[str, Anything],
    agent=dict[str, Anything],
    provider=dict[str, Anything],
    permission=Anything,
)
COMMAND = form(
    name=str,
    template=str,
    hints=WORDS,
    description=maybe(str),
    agent=maybe(str),
    model=maybe(str),
    source=maybe(Literal["command", "mcp", "skill"]),
    subtask=maybe(bool),
)
TOKENS = form(
    input=int,
    output=int,
    reasoning=int,
    cache=form(read=int, write=int),
    total=maybe(int),
    estimated=maybe(int),
)
SESSION = form(
    id=str,
    slug=str,
    projectID=str,
    directory=str,
    title=str,
    version=str,
    time=form(created=int, updated=int, compacting=maybe(int), archived=maybe(int)),
    path=maybe(str),
    parentID=maybe(str),
    agent=maybe(str),
    model=maybe(form(id=str, providerID=str, variant=maybe(str))),
    cost=maybe(float),
    tokens=maybe(TOKENS),
    summary=maybe(form(additions=int, deletions=int, files=int)),
    metadata=maybe(Anything),
    permission=maybe(list[RULE]),
    revert=maybe(Anything),
)
MCP = form(
    status=Literal["connected", "disabled", "failed", "needs_auth", "needs_client_registration"],
    error=maybe(str),
)

START: tuple[tuple[str, Any], ...] = (
    ("/path", PATH),
    ("/project/current", PROJECT),
    ("/config/providers", USABLE),
    ("/provider", KNOWN),
    ("/experimental/capabilities", form(backgroundSubagents=bool)),
    ("/experimental/console", form(consoleManagedProviders=WORDS, switchableOrgCount=int)),
    ("/agent", list[AGENT]),
    ("/config", SETTINGS),
    ("/session?start=1&path=", list[SESSION]),
    ("/api/location", form(directory=str, project=form(id=str, directory=str, canonical=str))),
    ("/command", list[COMMAND]),
    ("/lsp", list[Anything]),
    ("/mcp", dict[str, MCP]),
    ("/experimental/resource", Anything),
    ("/formatter", list[Anything]),
    ("/session/status", Anything),
    ("/provider/auth", dict[str, list[form(type=Literal["oauth", "api"], label=str)]]),
    ("/vcs", form(branch=maybe(str), default_branch=maybe(str))),
    ("/experimental/workspace", list[Anything]),
    ("/experimental/workspace/status", list[Anything]),
    ("/project", list[PROJECT]),
    ("/skill", list[Anything]),
    ("/permission", list[Anything]),
    ("/question", list[Anything]),
)
CONFIG: dict[str, Any] = {
    "model": "acme/m",
    "share": "disabled",
    "enabled_providers": ["acme", "anthropic", "openai"],
    "agent": {
        "mine": {
            "prompt": "You are mine.",
            "mode": "subagent",
            "steps": 4,
            "permission": {"bash": "ask"},
        }
    },
    "command": {"hi": {"template": "Say hi to $1.", "description": "Greets."}},
    "permission": {"edit": "ask", "bash": {"*": "ask", "git status": "allow"}},
    "provider": {
        "acme": {
            "options": {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "x"},
            "models": {"m": {}},
        }
    },
    "mcp": {},
}


async def check(it: Served, path: str, kind: Any) -> Any:
    """Ask, and return the answer; fails unless it is JSON of that form."""
    answer = await it.http.get(path)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    try:
        msgspec.json.decode(answer.content, type=kind)
    except msgspec.ValidationError as error:
        raise AssertionError(f"{path}: {error}: {answer.text[:500]}") from error
    return answer.json()


@pytest.mark.parametrize("is_repository", [True, False])
async def test_every_answer_at_the_start_has_the_form_that_clients_count_on(
    tmp_path: Path, *, is_repository: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    if is_repository:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", "-C", str(work), *identity, *words], check=True)
    async with served(tmp_path, [ScriptedAnswer(text="Done.")], **CONFIG) as it:
        await it.prompt(await it.session())
        found = {path: await check(it, path, kind) for path, kind in START}
        current = found["/project/current"]
        assert await check(it, f"/project/{current['id']}/directories", list[DIRECTORY]) == [
            {"directory": str(work)}
        ]
    assert {agent["name"] for agent in found["/agent"]} >= {"build", "plan", "mine"}
    assert found["/config"]["model"] == "acme/m"
    assert [provider["id"] for provider in found["/config/providers"]["providers"]] == [
        "scripted",
        "acme",
    ]
    assert current["id"] == found["/api/location"]["project"]["id"]
    assert (current.get("vcs") == "git") is is_repository
    assert len(found["/session?start=1&path="]) == 1


@pytest.mark.parametrize(
    "name", ["agent", "model", "provider", "integration", "reference", "command", "skill"]
)
async def test_what_is_not_offered_is_missing_in_json(tmp_path: Path, name: str) -> None:
    """A web page in its place would end such a client."""
    async with served(tmp_path) as it:
        answer = await it.http.get(f"/api/{name}")
    assert answer.status_code in {200, 404}
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    json.loads(answer.text)


async def test_the_connect_dialog_stores_a_key_and_reads_everything_anew(tmp_path: Path) -> None:
    async with served(tmp_path, enabled_providers=["openai", "anthropic"]) as it:
        assert "openai" not in (await it.get("/provider"))["connected"]
        assert (
            await it.http.put("/auth/openai", json={"type": "api", "key": "sk-0123456789abcdef"})
        ).json() is True
        assert await it.post("/instance/dispose") is True
        listed = await check(it, "/config/providers", USABLE)
        assert "openai" in [provider["id"] for provider in listed["providers"]]
        assert "openai" in (await it.get("/provider"))["connected"]
