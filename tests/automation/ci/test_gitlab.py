"""`codeloop ci run` in jobs of a local GitLab, with a real repository and the real program."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.automation.ci.ci_project import CALC, LIMITS, TEST, make_bare, run
from tests.automation.ci.gitlab_server import EVE, PROJECT, GitLabServer
from tests.automation.ci.host_server import Fault, serving_host
from tests.cli.program import Desk, bash, call, serving, steps
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow


def handle(
    folder: Path,
    host: GitLabServer,
    model: ModelServer,
    payload: dict[str, Any] | None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run `codeloop ci run` in a fresh checkout, in a pipeline that a webhook triggered,
    or as `more` says.
    """
    work = folder / "work"
    run("rm", "-rf", str(work))
    run("git", "clone", "--quiet", f"file://{host.bare}", str(work))
    environment = {
        "CI_API_V4_URL": f"{host.url}/api/v4",
        "CI_SERVER_URL": host.url,
        "CI_PROJECT_ID": PROJECT,
        "CI_PROJECT_PATH": "acme/calc",
        "CI_JOB_ID": "5",
        "CI_JOB_URL": f"{host.url}/acme/calc/-/jobs/5",
        "CI_PIPELINE_SOURCE": "trigger",
        "CODELOOP_GITLAB_TOKEN": host.token,
        "CI_JOB_TOKEN": "job-secret",
    }
    if payload is not None:
        path = folder / "payload.json"
        path.write_text(json.dumps(payload))
        environment["TRIGGER_PAYLOAD"] = str(path)
    desk = Desk(folder, limits=LIMITS)
    desk.use(model)
    return desk.run("ci", "run", **{**environment, **more})


def test_comments_become_merge_requests_once_and_forks_are_refused(tmp_path: Path) -> None:
    bare = make_bare(tmp_path, {"calc.py": CALC, "test_calc.py": TEST})
    fix = call("edit", filePath="calc.py", oldString="a - b", newString="a + b")
    answers = (bash("env", "c0"), fix, Answer(text="Fixed.\n/merge\nThanks @eve"))
    with serving_host(GitLabServer(bare, page_size=2)) as host, serving(steps(*answers)) as model:
        number = host.add_issue("add is wrong", "It subtracts.")
        for _ in range(3):
            host.add_note("issues", number, "me too", EVE)
        note = host.add_note("issues", number, "/codeloop\nPlease fix it.")
        host.faults += [
            Fault("POST", r"/notes", cut="after"),
            Fault("POST", r"/merge_requests$", status=500),
            Fault("PUT", r"/notes", status=429, headers={"Retry-After": "0"}),
        ]
        payload = host.webhook("issues", number, note)

        done = handle(tmp_path, host, model, payload)

        assert done.returncode == 0, done.stderr
        (merge,) = host.merges.values()
        assert (merge["source_branch"], merge["title"]) == (
            f"codeloop/issue-{number}",
            "add is wrong",
        )
        assert (
            host.git("show", f"codeloop/issue-{number}:calc.py")
            == CALC.replace("a - b", "a + b").strip()
        )
        (text,) = host.own_notes("issues", number)
        assert "/-/jobs/5/artifacts/file/codeloop-ci/ses_" in text
        assert "\n/merge" not in text
        assert "@eve" not in text
        shown = json.dumps([request.body.decode() for request in model.requests])
        assert host.token not in shown
        assert "job-secret" not in shown

        asked = len(model.requests)
        assert handle(tmp_path, host, model, payload).returncode == 0
        assert len(model.requests) == asked
        fork = host.add_merge("codeloop/issue-1", source=99)
        asking = host.add_note("merge_requests", fork, "/codeloop\nreview")
        refused = handle(tmp_path, host, model, host.webhook("merge_requests", fork, asking))
        assert "comes from a fork" in refused.stderr
        reader = {**host.webhook("issues", number, note), "user": EVE}
        assert "may not write" in handle(tmp_path, host, model, reader).stderr
        revoked = handle(tmp_path, host, model, payload, CODELOOP_GITLAB_TOKEN="old")
        assert revoked.returncode == 1
        assert "CODELOOP_GITLAB_TOKEN" in revoked.stderr
        assert host.violations == []


def test_a_merge_request_is_reviewed_once(tmp_path: Path) -> None:
    good = CALC.replace("a - b", "a + b")
    bare = make_bare(tmp_path, {"calc.py": good, "test_calc.py": TEST})
    line = "python3 -c 'import calc; print(\"double\", calc.double(4)); assert calc.double(4) == 8'"
    found = {
        "path": "calc.py",
        "line": 6,
        "title": "double triples",
        "body": "It is 12.",
        "command": line,
    }
    answers = (
        bash(line),
        call("StructuredOutput", call_id="out", findings=[{**found, "output": "double 12"}]),
    )
    with serving_host(GitLabServer(bare)) as host, serving(steps(*answers)) as model:
        seed = tmp_path / "seed"
        run("git", "checkout", "--quiet", "-b", "feature", cwd=seed)
        (seed / "calc.py").write_text(good.replace("a * 2", "a * 3"))
        run(
            "git",
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@e.org",
            "commit",
            "--quiet",
            "-am",
            "Change",
            cwd=seed,
        )
        run("git", "push", "--quiet", str(bare), "feature", cwd=seed)
        number = host.add_merge("feature")
        host.faults.append(Fault("POST", r"/discussions", cut="after"))
        pipeline = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_IID": str(number),
            "CI_MERGE_REQUEST_PROJECT_ID": PROJECT,
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": PROJECT,
            "GITLAB_USER_ID": "1",
        }
        for commit in ("a", "b"):
            done = handle(tmp_path, host, model, None, **pipeline, CI_COMMIT_SHA=commit)
            assert done.returncode == 0, done.stderr
        (note,) = [row for row in host.notes if row.get("type") == "DiffNote"]
        assert "double 12" in note["body"]
        (text,) = host.own_notes("merge_requests", number)
        assert "1 posted before" in text
        assert host.violations == []
