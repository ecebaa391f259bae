"""`codeloop ci review`: what is posted was reproduced, on a changed line, once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.automation.ci.ci_project import CALC, TEST, CiProject, make_bare
from tests.automation.ci.github_server import GitHubServer
from tests.automation.ci.host_server import Fault, serving_host
from tests.cli.program import bash, call, serving, steps
from tests.support.answers import Answer

pytestmark = pytest.mark.slow
GOOD = CALC.replace("a - b", "a + b")
BAD = GOOD.replace("a * 2", "a * 3")  # line 6
SCRIPT = "from calc import double\nprint('double', double(4))\nassert double(4) == 8, f'double(4) is {double(4)}'\n"
RUN = "python3 check_double.py"


def finding(
    line: int = 6, command: str = RUN, output: str = "AssertionError: double(4) is 12", **more: Any
) -> dict[str, Any]:
    return {
        "path": "calc.py",
        "line": line,
        "title": "double triples",
        "body": "4 becomes 12.",
        "command": command,
        "output": output,
        **more,
    }


def answer(*findings: dict[str, Any]) -> Answer:
    return call("StructuredOutput", call_id="out", findings=list(findings))


def test_only_what_a_run_proves_on_a_changed_line_is_posted_and_only_once(tmp_path: Path) -> None:
    bare = make_bare(tmp_path, {"calc.py": GOOD, "test_calc.py": TEST})
    model_steps = (
        call("write", filePath="check_double.py", content=SCRIPT, call_id="c1"),
        bash(RUN, "c2"),
        bash("echo 'calc double is broken: 99'", "c3"),
        bash(
            "python3 -c 'import calc; print(\"calc add\", calc.add(1, 1)); assert calc.add(1, 1) == 3'",
            "c4",
        ),
        answer(
            finding(),
            finding(line=2, title="another line"),
            finding(command="python3 never_run.py", title="never run"),
            finding(output="double(4) is 17", title="made up"),
            finding(
                command="echo 'calc double is broken: 99'",
                output="double is broken: 99",
                title="only words",
            ),
            finding(title="the same proof again", body="other words"),
        ),
    )
    with serving_host(GitHubServer(bare)) as host, serving(steps(*model_steps)) as model:
        it = CiProject(tmp_path, host, model)
        it.branch("feature", {"calc.py": BAD})
        number = host.add_pull("feature")
        host.faults.append(Fault("POST", r"/reviews", cut="after"))
        payload = host.event("pull_request", "opened", number)

        done = it.handle("pull_request", payload)

        assert done.returncode == 0, done.stderr
        (comment,) = host.line_comments
        assert (comment["path"], comment["line"], comment["side"]) == ("calc.py", 6, "RIGHT")
        assert "AssertionError: double(4) is 12" in comment["body"]
        assert "# exit code 1" in comment["body"]
        assert "shell_metadata" not in comment["body"], (
            "words for the model are not shown to people"
        )
        (text,) = host.own_comments(number)
        print(text)
        assert "1 finding posted" in text
        assert "4 could not be reproduced" in text
        assert "1 not on a changed line" in text
        assert len(host.reviews) == 1
        assert (tmp_path / "work" / "check_double.py").exists()

        # The same push again, and then a second push that keeps the bug.
        assert it.handle("pull_request", payload, run_id="2").returncode == 0
        it.branch("feature", {"calc.py": "# words\n" + BAD}, start="feature")
        moved = answer(finding(line=7))
        with serving(steps(*model_steps[:2], moved)) as other:
            again = CiProject(tmp_path, host, other)
            assert (
                again.handle(
                    "pull_request", host.event("pull_request", "synchronize", number), run_id="3"
                ).returncode
                == 0
            )
        assert len(host.line_comments) == 1
        (text,) = host.own_comments(number)
        assert "No findings posted" in text
        assert "1 posted before" in text
        assert host.violations == []
        assert "It is run again without you" in json.dumps(
            [request.json for request in model.requests]
        )


def test_a_push_during_the_review_loses_no_finding(tmp_path: Path) -> None:
    bare = make_bare(tmp_path, {"calc.py": GOOD, "test_calc.py": TEST})
    model_steps = (
        call("write", filePath="check_double.py", content=SCRIPT, call_id="c1"),
        bash(RUN, "c2"),
        answer(finding()),
    )
    with serving_host(GitHubServer(bare)) as host, serving(steps(*model_steps)) as model:
        it = CiProject(tmp_path, host, model)
        it.branch("feature", {"calc.py": BAD})
        number = host.add_pull("feature")
        reviewed = host.sha("feature")

        def push() -> None:
            it.branch("other", {"calc.py": "# words\n" + BAD})
            host.git("update-ref", "refs/heads/feature", host.sha("other"))

        host.faults.append(Fault("GET", r"/pulls/1/comments", cut="after", then=push))
        done = it.handle("pull_request", host.event("pull_request", "opened", number))

        assert done.returncode == 0, done.stderr
        assert host.line_comments == []
        (text,) = host.own_comments(number)
        assert f"It was about {reviewed[:10]}" in text
        assert "AssertionError: double(4) is 12" in text
        assert host.violations == []
