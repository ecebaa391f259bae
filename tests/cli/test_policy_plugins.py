"""Plugins that decide about what happens and can't be loaded: what they would have
been asked about is refused.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.host.offer_cache import OfferCache, find_policy_hooks
from codeloop.extend.host.protocol import ExtensionOffer, OfferedTool
from tests.cli.program import Desk, bash, serving, steps
from tests.cli.test_extension_run import told
from tests.support.answers import Answer
from tests.support.javascript_extensions import find_host_command

GUARD = """
from codeloop.extension import hook

@hook("tool.execute.before", policy=True)
def guard(input, output):
    return output
"""
BROKEN = "def guard(:\n"
SCRIPT = steps(bash("echo hi"), Answer(text="Done."))


def result_of_call(desk: Desk, **settings: Any) -> str:
    with serving(SCRIPT) as server:
        desk.use(server, permission={"bash": "allow"}, **settings)
        done = desk.run("run", "go")
        if done.returncode:
            return done.stderr
        (said,) = told(server)
    return said


MASK = """
import json
from pathlib import Path
from codeloop.extension import hook, tool

@tool
def mask_state() -> str:
    return "as mask.json says"

if Path("mask.json").exists() and json.loads(Path("mask.json").read_text())["enabled"]:

    @hook("experimental.chat.messages.transform")
    def mask(input, output):
        for message in output["messages"]:
            for part in message["parts"]:
                if "text" in part:
                    part["text"] = part["text"].replace("TOPSECRET42", "(hidden)")
        return output
"""
"""A plugin that protects only where its own file of settings says so."""
SCRIPT_MASK = """
import fs from "node:fs"

export const Mask = async ({ directory }) => {
  if (!fs.existsSync(`${directory}/mask.json`)) return {}
  return {
    "experimental.chat.messages.transform": async (_input, output) => {
      for (const { parts } of output.messages)
        for (const part of parts) if (part.text) part.text = part.text.replace("TOPSECRET42", "(hidden)")
    },
  }
}
"""


def is_sent(desk: Desk, **settings: Any) -> bool:
    """Run a turn whose prompt holds a secret; return whether the model's service received it."""
    with serving([Answer(text="Done.")] * 2) as server:
        desk.use(server, **settings)
        desk.run("run", "the key is TOPSECRET42")
        return any("TOPSECRET42" in json.dumps(request.json) for request in server.requests)


def masked(desk: Desk, name: str, text: str) -> None:
    plugin = desk.home / "config" / "plugin" / name
    plugin.parent.mkdir(parents=True)
    plugin.write_text(text)


@pytest.mark.slow
def test_what_one_brought_is_known_only_with_the_settings_that_it_found(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    masked(desk, "mask.py", MASK)
    assert is_sent(desk), "there is nothing that says what to hide"
    (desk.work / "mask.json").write_text('{"enabled": true}')
    assert not is_sent(desk)
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert (row["state"], row["hooks"]) == ("ok", ["experimental.chat.messages.transform"])
    (desk.work / "mask.json").write_text('{"enabled": false}')
    assert is_sent(desk)


def test_an_offer_is_known_where_it_was_made_and_an_empty_one_nowhere(tmp_path: Path) -> None:
    offer = ExtensionOffer((OfferedTool("t", "", {}),))
    here, there = (OfferCache(tmp_path, lambda name=name: name) for name in ("here", "there"))
    here.put("digest", offer)
    assert (here.get("digest"), there.get("digest")) == (offer, None)
    here.put("digest", ExtensionOffer())
    assert here.get("digest") is None


def test_one_that_brings_nothing_is_said_to_and_loaded_again(tmp_path: Path) -> None:
    find_host_command()  # skips without a runtime
    desk = Desk(tmp_path)
    masked(desk, "mask.js", SCRIPT_MASK)
    assert is_sent(desk)
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert (row["state"], "brings nothing" in row["why"]) == ("empty", True)
    (desk.work / "mask.json").touch()
    assert not is_sent(desk)


@pytest.mark.slow
def test_one_that_is_marked_as_a_policy_and_brings_nothing_refuses(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    own = desk.home / "config" / "mask.py"
    own.parent.mkdir(parents=True)
    own.write_text(MASK)
    entry = [["./mask.py", {"policy": True}]]
    assert not is_sent(desk, plugin=entry)
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert (row["state"], "marked as a policy" in row["why"]) == ("fails", True)
    assert not is_sent(desk, plugin=[[str(desk.folder / "gone.py"), {"policy": True}]])


@pytest.mark.slow
def test_one_that_was_a_policy_and_breaks_refuses(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    guard = desk.home / "config" / "plugin" / "guard.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(GUARD)
    assert result_of_call(desk).startswith("hi")
    guard.write_text(BROKEN)
    refused = result_of_call(desk)
    assert (
        "guard.py decides about tool.execute.before, and could not: it can't be loaded: " in refused
    )
    assert "invalid syntax" in refused


@pytest.mark.slow
def test_a_policy_refuses_until_it_is_mended_or_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    guard = desk.home / "config" / "plugin" / "guard.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(BROKEN)
    assert result_of_call(desk).startswith("hi")  # nobody knows what it would be
    guard.write_text(GUARD)
    assert result_of_call(desk).startswith("hi")
    guard.write_text(f"import nowhere_to_be_found\n{GUARD}")
    assert "nowhere_to_be_found" in result_of_call(desk)
    guard.write_text(GUARD.replace("policy=True", "policy=False"))
    assert result_of_call(desk).startswith("hi")
    guard.write_text(BROKEN)
    assert result_of_call(desk).startswith("hi")
    guard.write_text(GUARD)
    result_of_call(desk)
    guard.unlink()
    assert result_of_call(desk).startswith("hi")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (["./guard.py", {"policy": True}], "guard.py does not exist"),
        (["pypi:codeloop-guard", {"policy": True}], "is not installed"),
        ("pypi:codeloop-guard", None),
    ],
)
def test_an_entry_that_is_marked_as_a_policy_refuses_while_it_is_not_there(
    tmp_path: Path, entry: Any, why: str | None
) -> None:
    desk = Desk(tmp_path)
    if why is None:
        assert result_of_call(desk, plugin=[entry]).startswith("hi")
        return
    said = result_of_call(desk, plugin=[entry])
    assert (
        "decides about experimental.chat.messages.transform, and could not: it can't be loaded: "
        in said
    )
    assert why in said
    rows = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert [row["state"] for row in rows] == ["fails"]


@pytest.mark.slow
def test_a_mark_makes_every_hook_of_an_entry_a_policy(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    guard = desk.home / "config" / "own.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(
        GUARD.replace("policy=True", "policy=False").replace("return output", "return 3")
    )
    assert result_of_call(desk, plugin=["./own.py"]).startswith("hi")
    assert "could not: it answered int" in result_of_call(
        desk, plugin=[["./own.py", {"policy": True}]]
    )


@pytest.mark.slow
def test_a_package_that_is_a_policy_refuses_when_it_breaks_or_goes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    package = desk.home / "config" / "guards"
    (package / "plugin").mkdir(parents=True)
    manifest, file = package / "plugin.json", package / "plugin" / "guard.py"
    manifest.write_text('{"name": "guards", "policy": true}')
    file.write_text(BROKEN)
    plugin = ["./guards"]
    assert "invalid syntax" in result_of_call(desk, plugin=plugin)
    file.write_text(GUARD)
    assert result_of_call(desk, plugin=plugin).startswith("hi")
    manifest.write_text("{")
    assert "could not: it can't be loaded: " in result_of_call(desk, plugin=plugin)
    shutil.rmtree(package)
    assert "does not exist" in result_of_call(desk, plugin=plugin)
    assert result_of_call(desk).startswith("hi")


def test_what_was_a_policy_is_kept_by_its_path(tmp_path: Path) -> None:
    known = OfferCache(tmp_path)
    known.store_policy("/p/guards/plugin/a.py", ("chat.message",))
    known.store_policy("/p/guards/plugin/b.py", ("tool.execute.before",))
    assert find_policy_hooks(tmp_path, "/p/guards") == ("chat.message", "tool.execute.before")
    assert find_policy_hooks(tmp_path, "/p/guard") == ()
    known.store_policy("/p/guards/plugin/c.py", ("chat.message",), "same")
    known.store_policy("/p/guards/plugin/c.py", (), "same")
    assert find_policy_hooks(tmp_path, "/p/guards/plugin/c.py") == ("chat.message",), (
        "elsewhere it is one"
    )
    known.store_policy("/p/guards/plugin/c.py", (), "other")
    known.store_policy("/p/guards/plugin/a.py", ())
    assert find_policy_hooks(tmp_path, "/p/guards") == ("tool.execute.before",)
    (file,) = (tmp_path / "policy").iterdir()
    file.write_text("{")
    assert find_policy_hooks(tmp_path, "/p/guards") == ()
