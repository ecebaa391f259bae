"""`codeloop share`: a session as one page for others, as the real program."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk
from tests.support.planted_keys import draw_keys

SES, USR, ANS = (
    "ses_1f88ee7d6001abcdefghijklmn",
    "msg_1f88ee7d6002abcdefghijklmn",
    "msg_1f88ee7d6003abcdefghijklmn",
)
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def document(texts: Iterator[str], home: str) -> dict[str, Any]:
    """Return a session with one of the texts wherever text can stand."""
    number = 0

    def part(message: str, kind: str, **more: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {
            "id": f"prt_1f88ee7d6{number:03d}abcdefghijklmn",
            "sessionID": SES,
            "messageID": message,
            "type": kind,
        } | more

    def call(tool: str, given: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        state = {
            "status": "completed",
            "input": given,
            "output": next(texts),
            "title": next(texts),
            "metadata": metadata,
        }
        return part(
            ANS, "tool", callID="c", tool=tool, state=state | {"time": {"start": 1, "end": 2}}
        )

    def failed(tool: str) -> dict[str, Any]:
        state = {
            "status": "error",
            "input": {"x": next(texts)},
            "error": next(texts),
            "time": {"start": 1, "end": 2},
        }
        return part(ANS, "tool", callID="c", tool=tool, state=state)

    def user(text: str) -> list[dict[str, Any]]:
        image = part(USR, "file", mime="image/png", url=PIXEL, filename=next(texts))
        page = part(
            USR, "file", mime="text/plain", url=f"data:text/plain,{next(texts)}", filename="a.txt"
        )
        hidden = part(USR, "text", text=f"for the model alone {next(texts)}", synthetic=True)
        return [part(USR, "text", text=text), image, page, hidden]

    def answer() -> list[dict[str, Any]]:
        patch = f"--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-{next(texts)}\n+{next(texts)}\n"
        diff = {
            "file": next(texts),
            "patch": patch,
            "additions": 1,
            "deletions": 1,
            "before": next(texts),
        }
        return [
            part(ANS, "reasoning", text=next(texts), time={"start": 1, "end": 2}, metadata={"signature": next(texts)}),
            part(ANS, "text", text=next(texts)),
            call("bash", {"command": next(texts)}, {"output": next(texts), "exit": 0, "note": next(texts)}),
            call("edit", {"filePath": f"{home}/p/x.py", "oldString": next(texts)}, {"diff": patch, "filediff": diff}),
            call("mcp_thing", {next(texts): [{"deep": next(texts)}]}, {"own": next(texts)}),
            call("todowrite", {"todos": [{"content": next(texts), "status": "pending", "priority": "high"}]}, {}),
            failed("read"),
            part(ANS, "patch", hash="x", files=[next(texts), f"{home}/p/x.py"]),
        ]  # fmt: skip

    common = {"sessionID": SES, "agent": "build"}
    where = {"cwd": f"{home}/p", "root": f"{home}/p"}
    prompt = common | {
        "id": USR,
        "role": "user",
        "time": {"created": 1},
        "model": {"providerID": "p", "modelID": "m"},
    }
    reply = common | {
        "id": ANS, "role": "assistant", "parentID": USR, "modelID": "m", "providerID": "p", "mode": "build",
        "cost": 0.25, "path": where, "time": {"created": 2, "completed": 3},
        "tokens": {"input": 3, "output": 4, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "error": {"name": "UnknownError", "data": {"message": next(texts)}},
    }  # fmt: skip
    time = {"created": 1700000000000, "updated": 1700000000500}
    info = {
        "id": SES,
        "slug": "kind-fox",
        "projectID": "abc",
        "directory": home,
        "title": next(texts),
        "version": "1",
        "time": time,
    }
    parts = [[*user("\n".join(next(texts) for _ in range(5))), *answer()] for _ in range(20)]
    questions = [part for each in parts for part in each if part["messageID"] == USR]
    answers = [part for each in parts for part in each if part["messageID"] == ANS]
    return {
        "info": info | {"title": next(texts)},
        "messages": [{"info": prompt, "parts": questions}, {"info": reply, "parts": answers}],
    }


@pytest.mark.slow
def test_no_key_of_five_hundred_is_in_the_page_and_nothing_ends_the_data(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    keys = draw_keys(500)
    used = 0

    def texts() -> Iterator[str]:
        nonlocal used
        while True:
            used += 1
            yield f"one </script><!-- {keys[used % 500][0]} of many"

    (tmp_path / "s.json").write_text(json.dumps(document(texts(), str(tmp_path))))
    done = desk.run("import", str(tmp_path / "s.json"))
    assert done.returncode == 0, done.stderr
    assert used >= 500
    done = desk.run("share", "--file", str(tmp_path / "out.html"))
    assert done.returncode == 0, done.stderr
    assert "2 messages" in done.stderr
    page = (tmp_path / "out.html").read_text()
    assert [text for text, secret in keys if secret in page] == []
    before, _, rest = page.partition('<script type="application/json" id="session">')
    data, _, after = rest.partition("</script>")
    shared = json.loads(data)
    assert "default-src 'none'" in before
    assert after.count("</script>") == 1
    assert shared["hidden"] >= 500
    parts = [part for message in shared["sessions"][0]["messages"] for part in message["parts"]]
    assert {part["url"] for part in parts if part["type"] == "file"} == {PIXEL, ""}
    assert "for the model alone" not in page
    assert str(tmp_path) not in page
    assert {part["state"]["input"]["filePath"] for part in parts if part.get("tool") == "edit"} == {
        "~/p/x.py"
    }


def test_a_key_of_ours_is_hidden_though_it_looks_like_any_word(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "s.json").write_text(
        json.dumps(document(iter(["a plain-looking-word b"] * 2_000), str(tmp_path)))
    )
    assert desk.run("import", str(tmp_path / "s.json")).returncode == 0
    done = desk.run("share", "-f", str(tmp_path / "out.html"), SOME_TOKEN="plain-looking-word")
    assert done.returncode == 0, done.stderr
    assert "plain-looking-word" not in (tmp_path / "out.html").read_text()
    refused = desk.run("share", "-f", str(tmp_path / "nowhere" / "out.html"))
    assert refused.returncode == 1
    assert "No such file or directory" in refused.stderr
