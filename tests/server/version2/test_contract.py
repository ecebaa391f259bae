"""Every operation of version 2 is called once on a real server; its answer is checked against
the contract (`contract.txt`).
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from tests.server.support.serving import Served, served
from tests.server.version2.contract import Operation2, find_problem, read_contract
from tests.support.programs import commit_all

DONE = ScriptedAnswer(text="Done.")
RUN = ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "echo hi"}),))
ASK = ScriptedAnswer(
    calls=(
        ScriptedCall(
            "question",
            {
                "questions": [
                    {
                        "question": "Which?",
                        "header": "Which",
                        "options": [{"label": "A", "description": "a"}],
                    }
                ]
            },
        ),
    )
)
_LEFT_OUT = """
integration.wellknown.add integration.connect.external integration.command.connect
integration.command.status integration.oauth.connect integration.oauth.status
integration.oauth.complete credential.update plugin.update rpc.call server.pair
server.connect voice.session experimental.persistentPty.create
experimental.persistentPty.get experimental.persistentPty.update
experimental.persistentPty.remove experimental.persistentPty.snapshot
experimental.persistentPty.connectToken websearch.query
"""
LEFT_OUT = frozenset(_LEFT_OUT.split())
"""What is answered with an error that says why, or needs a service."""


_PLAIN = """
server.info location.get debug.location.list config.get config.shells agent.list
command.list skill.list model.list model.default provider.list integration.list
credential.list migration.v1.status reference.list websearch.providers plugin.list
plugin.check mcp.list mcp.resource.catalog form.list permission.request.list
permission.saved.list project.list pty.list shell.list vcs.get vcs.base vcs.status
vcs.branch.list session.active session.list file.list generate.text
"""
"""What needs nothing."""


class Harness:
    """Calls operations by their ids, and notes what came of each."""

    def __init__(self, it: Served) -> None:
        self.it = it
        self.verdicts: dict[str, str] = {}
        self.operations = read_contract()[0]

    async def call(self, name: str, body: Any = None, query: Any = None, **path: str) -> Any:
        """Call an operation, and return its answer."""
        operation = self.operations[name]
        address = operation.path.format_map(path) if path else operation.path
        headers = {"x-opencode-ticket": "1"} if name == "pty.connect.token" else {}
        response = await self.it.http.request(
            operation.method,
            address,
            params=query,
            headers=headers,
            content=body if isinstance(body, bytes) else None,
            json=None if isinstance(body, bytes) else body,
        )
        verdict = judge(operation, response)
        if not self.verdicts.get(name, "").startswith("right"):
            self.verdicts[name] = verdict
        return (
            response.json()
            if response.content and "json" in response.headers.get("content-type", "")
            else None
        )


def judge(operation: Operation2, response: httpx2.Response) -> str:
    """Return `right`, `missing`, `refused` or `shape`, and why."""
    if response.status_code != operation.status:
        body = response.text[:200]
        if "There is no route" in body or response.status_code == 405:
            return f"missing {body}"
        if response.status_code < 300:
            return f"shape: {response.status_code} for {operation.status}"
        tagged = '"_tag"' in body
        return f"refused: {response.status_code} {body}" if tagged else f"shape: untagged {body}"
    if operation.answer == "-":
        return "right" if not response.content else "shape: a body"
    if operation.id == "file.read":
        return "right"
    problem = find_problem(response.json(), operation.answer)
    return f"shape: {problem}" if problem else "right"


async def wait_until_idle(harness: Harness, session: str) -> None:
    await harness.call("session.wait", sessionID=session)


async def call_server(h: Harness) -> None:
    for name in _PLAIN.split():
        body = {"prompt": "x"} if name == "generate.text" else None
        await h.call(name, {} if name == "plugin.check" else body)
    await h.call("agent.get", agentID="build")
    provider = (await h.call("integration.list"))["data"][0]["id"]
    await h.call("integration.get", integrationID=provider)
    usable = (await h.call("provider.list"))["data"]
    await h.call("provider.get", providerID=usable[0]["id"] if usable else "x")
    await h.call("config.update", {"shell": "/bin/sh"})
    await h.call("file.find", query={"query": "a"})
    await h.call("file.write", b"text", {"path": "new/a.txt"})
    await h.call("file.read", path="new/a.txt")
    for mode in ("working", "branch"):
        await h.call("vcs.diff", query={"mode": mode})


async def call_places(h: Harness) -> None:
    location = await h.call("location.get")
    project = location["project"]["id"]
    await h.call("project.update", {"name": "mine"}, projectID=project)
    await h.call("worktree.list", query={"projectID": project})
    made = await h.call("worktree.create", {"projectID": project, "name": "other"})
    await h.call("worktree.refresh", {"projectID": project})
    gone = {"projectID": project, "directory": made["directory"], "force": True}
    await h.call("worktree.remove", gone)
    await h.call("vcs.init")
    pty = (await h.call("pty.create", {"command": "cat"}))["data"]["id"]
    await h.call("pty.get", ptyID=pty)
    await h.call("pty.update", {"title": "mine"}, ptyID=pty)
    await h.call("pty.connect.token", ptyID=pty)
    await h.call("pty.remove", ptyID=pty)
    shell = (await h.call("shell.create", {"command": "echo hi"}))["data"]["id"]
    await h.call("shell.get", id=shell)
    await h.call("shell.output", id=shell)
    await h.call("shell.remove", id=shell)
    server = {"config": {"type": "local", "command": ["false"], "disabled": True}}
    await h.call("mcp.add", server, server="mine")
    await h.call("mcp.list")
    await h.call("mcp.connect", {}, server="mine")
    await h.call("mcp.disconnect", {}, server="mine")
    await h.call("mcp.remove", server="mine")
    key = {"key": "sk-0123456789abcdef"}
    await h.call("integration.connect.key", key, integrationID="anthropic")
    value = {"integrationID": "anthropic", "value": {"type": "key", **key}}
    made = await h.call("credential.create", value)
    await h.call("credential.list")
    await h.call("credential.activate", credentialID=made["data"]["id"])
    await h.call("credential.update", {"label": "x"}, credentialID=made["data"]["id"])
    await h.call("credential.remove", credentialID=made["data"]["id"])
    await h.call("integration.oauth.cancel", integrationID="anthropic", attemptID="x")
    await h.call("integration.command.cancel", integrationID="anthropic", attemptID="x")


async def call_left_out(h: Harness, session: str) -> None:
    at = {"integrationID": "anthropic", "attemptID": "x"}
    way = {"methodID": "x"}
    await h.call("integration.wellknown.add", {"url": "https://x.test"})
    await h.call("integration.connect.external", way, integrationID="anthropic")
    await h.call("integration.command.connect", way, integrationID="anthropic")
    await h.call("integration.oauth.connect", way, integrationID="anthropic")
    await h.call("integration.command.status", **at)
    await h.call("integration.oauth.status", **at)
    await h.call("integration.oauth.complete", {}, **at)
    await h.call("plugin.update", {"targets": []})
    await h.call("rpc.call", {}, rpcID="x", method="y")
    await h.call("server.pair", {})
    await h.call("server.connect", code="x")
    await h.call("voice.session", {"model": "x", "transport": {"type": "websocket"}})
    await h.call("websearch.query", {"query": "x"})
    kept = "experimental.persistentPty"
    for name in ("read", "list"):
        await h.call(f"{kept}.{name}", sessionID=session)
    await h.call(f"{kept}.create", {"args": [], "title": "x", "env": {}}, sessionID=session)
    await h.call(f"{kept}.shutdown", {})
    await h.call(f"{kept}.handoff", {})
    for name in ("get", "remove", "snapshot"):
        await h.call(f"{kept}.{name}", ptyID="x")
    await h.call(f"{kept}.update", {"size": {"cols": 1, "rows": 1}}, ptyID="x")
    await h.call(f"{kept}.connectToken", {}, ptyID="x")


async def call_sessions(h: Harness) -> str:
    rule = {"action": "webfetch", "resource": "*", "effect": "deny"}
    created = {"id": "ses_mine", "title": "Mine", "metadata": {"a": 1}, "permissions": [rule]}
    session = (await h.call("session.create", created))["data"]["id"]
    at = {"sessionID": session}
    prompt = (await h.call("session.prompt", {"id": "msg_1", "text": "go"}, **at))["data"]["id"]
    await wait_until_idle(h, session)
    await h.call("session.get", **at)
    await h.call("message.list", **at)
    await h.call("session.message.get", messageID=prompt, **at)
    await h.call("session.context", **at)
    await h.call("session.update", {"title": "Other", "archived": False}, **at)
    await h.call("session.switchAgent", {"agent": "plan"}, **at)
    model = (await h.call("session.get", **at))["data"]["model"]
    await h.call("session.switchAgent", {"agent": "build"}, **at)
    await h.call("session.switchModel", {"model": model}, **at)
    await h.call("session.fork", {"before": prompt}, **at)
    await h.call("session.move", {"directory": str(h.it.work)}, **at)
    await h.call("session.view", {"idle": 1}, **at)
    await h.call("session.environment", {"variables": {"MINE": "1"}}, **at)
    await h.call("session.stats", query={"tools": "detail"})
    exported = (await h.call("session.export", **at))["data"]
    await h.call("session.import", exported)
    await h.call("session.diff", **at)
    await h.call("session.generate", {"prompt": "x"}, **at)
    await h.call("session.synthetic", {"text": "x", "resume": False}, **at)
    await h.call("session.shell", {"command": "echo hi"}, **at)
    await wait_until_idle(h, session)
    await h.call("message.list", **at)
    await h.call("session.command", {"name": "mine", "text": ""}, **at)
    await wait_until_idle(h, session)
    await h.call("session.skill", {"id": "mine", "resume": False}, **at)
    await h.call("session.inbox.list", **at)
    await h.call("session.inbox.cancel", inboxID="msg_x", **at)
    entry = {"key": "mine", **at}
    await h.call("session.instructions.entry.put", {"value": "x"}, **entry)
    await h.call("session.instructions.entry.list", **at)
    await h.call("session.instructions.entry.remove", **entry)
    await h.call("session.interrupt", {}, **at)
    await h.call("session.background", {}, **at)
    await h.call("session.revert.stage", {"messageID": prompt}, **at)
    await h.call("session.revert.clear", **at)
    await h.call("session.revert.stage", {"messageID": prompt}, **at)
    await h.call("session.revert.commit", {}, **at)
    await h.call("session.compact", {}, **at)
    await wait_until_idle(h, session)
    await h.call("message.list", **at)
    return session


async def call_answers(h: Harness) -> None:
    session = (await h.call("session.create", {}))["data"]["id"]
    at = {"sessionID": session}
    asked = {"action": "edit", "resources": ["x"]}
    asked = (await h.call("permission.create", asked, **at))["data"]
    await h.call("session.prompt", {"text": "ask"}, **at)
    # The first one is the client's own.
    while len(found := (await h.call("permission.list", **at))["data"]) < 2:
        await asyncio.sleep(0.01)
    request = next(each["id"] for each in found if each["id"] != asked["id"])
    await h.call("permission.request.list")
    waiting = {"text": "later", "delivery": "queue", "id": "msg_later"}
    await h.call("session.prompt", waiting, **at)
    await h.call("session.inbox.list", **at)
    later = {"inboxID": "msg_later", **at}
    await h.call("session.inbox.update", {"delivery": "queue"}, **later)
    await h.call("session.inbox.cancel", **later)
    await h.call("permission.get", requestID=request, **at)
    await h.call("permission.reply", {"decision": "always"}, requestID=request, **at)
    while not (found := (await h.call("session.form.list", **at))["data"]):
        await asyncio.sleep(0.01)
    await h.call("form.list")
    form = {"formID": found[0]["id"], **at}
    await h.call("session.form.get", **form)
    await h.call("session.form.reply", {"answer": {"question0": "A"}}, **form)
    await wait_until_idle(h, session)
    field = {"key": "a", "type": "string", "title": "A"}
    made = await h.call("session.form.create", {"title": "T", "fields": [field]}, **at)
    await h.call("session.form.cancel", formID=made["data"]["id"], **at)
    for grant in (await h.call("permission.saved.list"))["data"]:
        changed = {"resource": "echo *"}
        await h.call("permission.saved.update", changed, id=grant["id"])
        await h.call("permission.saved.remove", id=grant["id"])
    await h.call("session.remove", **at)


@pytest.mark.slow
async def test_each_operation_answers_in_the_shape_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work" / ".opencode" / "command").mkdir(parents=True)
    (tmp_path / "work" / ".opencode" / "command" / "mine.md").write_text("Say hi.")
    skill = tmp_path / "work" / ".opencode" / "skill" / "mine"
    skill.mkdir(parents=True)
    skill.joinpath("SKILL.md").write_text("---\nname: mine\ndescription: d\n---\nText.")
    commit_all(tmp_path / "work")
    side = ScriptedAnswer(text="A text.", kind="side")
    answers = [DONE, DONE, RUN, ASK, DONE, DONE, *[side] * 20]
    async with served(tmp_path, answers, permission={"bash": "ask", "edit": "ask"}) as it:
        h = Harness(it)
        await call_server(h)
        await call_places(h)
        session = await call_sessions(h)
        await call_left_out(h, session)
        await call_answers(h)
        await h.call("debug.location.evict")
        await h.call("location.reload", {})
        h.verdicts["event.subscribe"] = h.verdicts["session.log"] = "right (test_events)"
    verdicts = {name: h.verdicts.get(name, "not called") for name in h.operations}
    wrong = {name: verdict for name, verdict in verdicts.items() if not verdict.startswith("right")}
    with capsys.disabled():
        kinds = ("right", "shape", "refused", "missing", "not called")
        counts = {kind: sum(v.startswith(kind) for v in verdicts.values()) for kind in kinds}
        print(f"\nversion 2: {counts}")
    assert {name for name in wrong if name not in LEFT_OUT} == set(), wrong
    assert all(wrong[name].startswith("refused") for name in wrong), wrong
