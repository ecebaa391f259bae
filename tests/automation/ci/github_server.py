"""The part of GitHub's REST API that `codeloop ci` uses."""

import copy
import re
import subprocess
from dataclasses import dataclass, field
from typing import Any

from tests.automation.ci.host_server import Handle, HostServer, Refused, Row

REPOSITORY = "acme/calc"
BOT = {"login": "github-actions[bot]", "type": "Bot"}


@dataclass
class GitHubServer(HostServer):
    """A repository with issues and pull requests. `roles`: of collaborators, by login."""

    git_user: str = "x-access-token"
    roles: dict[str, str] = field(default_factory=lambda: {"ada": "write", "eve": "read"})
    runs: dict[str, str] = field(default_factory=dict[str, str])
    issues: dict[int, Row] = field(default_factory=dict[int, Row])
    comments: list[Row] = field(default_factory=list[Row])
    pulls: dict[int, Row] = field(default_factory=dict[int, Row])
    line_comments: list[Row] = field(default_factory=list[Row])
    reviews: list[Row] = field(default_factory=list[Row])

    def check_headers(self, headers: dict[str, str]) -> None:
        if headers.get("authorization") != f"Bearer {self.token}":
            raise Refused(401, {"message": "Bad credentials"})
        if not headers.get("user-agent"):
            self.break_rule("no user-agent")
            raise Refused(403, {"message": "Request forbidden by administrative rules."})
        if (
            headers.get("accept") != "application/vnd.github+json"
            or headers.get("x-github-api-version") != "2022-11-28"
        ):
            self.break_rule("media type or version")
            raise Refused(400, {"message": "Bad version"})

    def routes(self) -> list[tuple[str, str, Handle]]:
        base = f"/repos/{re.escape(REPOSITORY)}"
        return [
            ("GET", "/user", self._user),
            ("GET", base, lambda *_: {"default_branch": "main", "full_name": REPOSITORY}),
            ("GET", rf"{base}/collaborators/([^/]+)/permission", self._permission),
            ("GET", rf"{base}/issues/(\d+)", lambda m, *_: self._issue(m)),
            ("GET", rf"{base}/issues/(\d+)/comments", lambda m, *_: self._comments_of(m)),
            ("POST", rf"{base}/issues/(\d+)/comments", self._comment),
            ("GET", rf"{base}/issues/comments/(\d+)", lambda m, *_: self._find(self.comments, m)),
            (
                "GET",
                rf"{base}/pulls/comments/(\d+)",
                lambda m, *_: self._find(self.line_comments, m),
            ),
            ("GET", rf"{base}/pulls/\d+/reviews/(\d+)", lambda m, *_: self._find(self.reviews, m)),
            ("PATCH", rf"{base}/issues/comments/(\d+)", self._edit_comment),
            ("DELETE", rf"{base}/issues/comments/(\d+)", self._delete_comment),
            ("GET", rf"{base}/actions/runs/(\w+)", self._run),
            ("GET", rf"{base}/pulls", self._list_pulls),
            ("POST", rf"{base}/pulls", self._open_pull),
            ("GET", rf"{base}/pulls/(\d+)", lambda m, *_: self._pull(m)),
            ("PATCH", rf"{base}/pulls/(\d+)", self._edit_pull),
            ("GET", rf"{base}/pulls/(\d+)/comments", lambda m, *_: self._line_comments_of(m)),
            ("POST", rf"{base}/pulls/(\d+)/reviews", self._review),
        ]

    def add_issue(self, title: str, body: str, login: str = "eve") -> int:
        number = len(self.issues) + 1
        user = {"login": login, "type": "User"}
        self.issues[number] = {
            "number": number,
            "title": title,
            "body": body,
            "user": user,
            "created_at": (moment := self.now()),
            "updated_at": moment,
        }
        return number

    def add_pull(
        self, branch: str, title: str = "A change", body: str = "", repository: str = REPOSITORY
    ) -> int:
        number = self.add_issue(title, body, "ada")
        self.issues[number]["pull_request"] = {"url": "..."}
        self.pulls[number] = {
            "number": number,
            "html_url": f"https://github.example/{REPOSITORY}/pull/{number}",
            "title": title,
            "body": body,
            "state": "open",
            "created_at": self.issues[number]["created_at"],
            "updated_at": self.issues[number]["updated_at"],
            "draft": False,
            "head": {"ref": branch, "sha": self.sha(branch), "repo": {"full_name": repository}},
            "base": {"ref": "main", "sha": self.sha("main"), "repo": {"full_name": REPOSITORY}},
        }
        return number

    def add_comment(self, number: int, body: str, login: str = "ada", kind: str = "User") -> Row:
        new = self.new_id()
        row = {
            "id": new,
            "html_url": f"https://github.example/{REPOSITORY}/issues/{number}#issuecomment-{new}",
            "body": body,
            "user": {"login": login, "type": kind},
            "created_at": (moment := self.now()),
            "updated_at": moment,
            "number": number,
        }
        self.comments.append(row)
        return row

    def own_comments(self, number: int) -> list[str]:
        return [
            row["body"] for row in self.comments if row["number"] == number and row["user"] == BOT
        ]

    def event(self, name: str, action: str, number: int, **more: Any) -> Row:
        """Return the payload of an event about an issue or a pull request,
        by ada unless `sender` says otherwise.
        """
        payload: Row = {
            "action": action,
            "repository": {"full_name": REPOSITORY},
            "sender": {"login": "ada", "type": "User"},
        }
        payload["pull_request" if name.startswith("pull") else "issue"] = (
            self._fresh(self.pulls[number]) if name.startswith("pull") else self.issues[number]
        )
        if action == "labeled":
            payload["issue"]["updated_at"] = self.now()
        # What is changed from now on is not in the event.
        return copy.deepcopy({**payload, **more})

    def _user(self, *_: Any) -> Row:
        raise Refused(403, {"message": "Resource not accessible by integration"})

    def _permission(self, match: re.Match[str], *_: Any) -> Row:
        login = match[1]
        if login not in self.roles:
            raise Refused(404, {"message": f"{login} is not a user"})
        role = self.roles[login]
        return {
            "permission": "write" if role == "maintain" else role,
            "role_name": role,
            "user": {"login": login},
        }

    def _run(self, match: re.Match[str], *_: Any) -> Row:
        if match[1] not in self.runs:
            raise Refused(404, {"message": "Not Found"})
        return {"id": match[1], "status": self.runs[match[1]]}

    def _issue(self, match: re.Match[str]) -> Row:
        return self._known(self.issues, match)

    def _pull(self, match: re.Match[str]) -> Row:
        return self._fresh(self._known(self.pulls, match))

    def _fresh(self, pull: Row) -> Row:
        repository = pull["head"]["repo"]  # none: the fork was deleted
        if (
            repository
            and repository["full_name"] == REPOSITORY
            and self.has_branch(pull["head"]["ref"])
        ):
            pull["head"]["sha"] = self.sha(pull["head"]["ref"])
        return pull

    def has_branch(self, name: str) -> bool:
        return any(
            row == name for row in self.git("branch", "--format=%(refname:short)").splitlines()
        )

    def _known(self, rows: dict[int, Row], match: re.Match[str]) -> Row:
        if int(match[1]) not in rows:
            raise Refused(404, {"message": "Not Found"})
        return rows[int(match[1])]

    def _find(self, rows: list[Row], match: re.Match[str]) -> Row:
        row = next((each for each in rows if each["id"] == int(match[1])), None)
        if row is None:
            raise Refused(404, {"message": "Not Found"})
        return row

    def _comments_of(self, match: re.Match[str]) -> list[Row]:
        self._issue(match)
        return [row for row in self.comments if row["number"] == int(match[1])]

    def _comment(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        self._issue(match)
        self._check_text(body)
        return self.add_comment(int(match[1]), body["body"], BOT["login"], "Bot")

    def _edit_comment(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        self._check_text(body)
        row = self._find(self.comments, match)
        row["body"], row["updated_at"] = body["body"], self.now()
        return row

    def _delete_comment(self, match: re.Match[str], _: dict[str, str], __: Row) -> None:
        self.comments.remove(self._find(self.comments, match))

    def _check_text(self, body: Row) -> None:
        self.take_fields(body, {"body": str}, {})
        if not body["body"].strip() or len(body["body"]) > 65_536:
            raise Refused(
                422,
                {"message": "Validation Failed", "errors": [{"field": "body", "code": "invalid"}]},
            )

    def _list_pulls(self, _: re.Match[str], query: dict[str, str], __: Row) -> list[Row]:
        owner, _colon, branch = query.get("head", "").partition(":")
        if (
            owner != REPOSITORY.split("/", maxsplit=1)[0]
            or not branch
            or query.get("state") not in {"open", "closed", "all"}
        ):
            self.break_rule(f"GET pulls {query}")
        return [
            self._fresh(row)
            for row in self.pulls.values()
            if row["head"]["ref"] == branch and row["state"] == query["state"]
        ]

    def _open_pull(self, _: re.Match[str], __: dict[str, str], body: Row) -> Row:
        self.take_fields(
            body, {"title": str, "head": str, "base": str}, {"body": str, "draft": bool}
        )
        wrong = ""
        if not self.sha(body["head"]) or not self.sha(body["base"]):
            wrong = "head or base is not a branch"
        elif any(
            row["head"]["ref"] == body["head"] and row["state"] == "open"
            for row in self.pulls.values()
        ):
            wrong = f"A pull request already exists for acme:{body['head']}."
        elif not self.git("log", "-1", f"{body['base']}..{body['head']}"):
            wrong = f"No commits between {body['base']} and {body['head']}"
        if wrong:
            raise Refused(422, {"message": "Validation Failed", "errors": [{"message": wrong}]})
        number = self.add_pull(body["head"], body["title"], body.get("body", ""))
        return self.pulls[number]

    def _edit_pull(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        self.take_fields(body, {}, {"title": str, "body": str, "state": str, "base": str})
        self._known(self.pulls, match).update(body)
        return self._pull(match)

    def _line_comments_of(self, match: re.Match[str]) -> list[Row]:
        self._pull(match)
        return [row for row in self.line_comments if row["pull"] == int(match[1])]

    def _review(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        """Post a review: all of its comments, or none if one is not on a line of the diff."""
        pull = self._pull(match)
        self.take_fields(body, {"event": str}, {"commit_id": str, "body": str, "comments": list})
        if (
            body["event"] not in {"COMMENT", "APPROVE", "REQUEST_CHANGES"}
            or body.get("commit_id") != pull["head"]["sha"]
        ):
            raise Refused(
                422, {"message": "Unprocessable Entity", "errors": ["event or commit_id"]}
            )
        for comment in body.get("comments", []):
            self.take_fields(comment, {"path": str, "body": str}, {"line": int, "side": str})
            if comment.get("line") not in self._diff_lines(pull, comment["path"]):
                raise Refused(
                    422,
                    {
                        "message": "Unprocessable Entity",
                        "errors": ["Pull request review thread line must be part of the diff"],
                    },
                )
        self.reviews.append(body)
        for comment in body.get("comments", []):
            self.line_comments.append(
                {"id": self.new_id(), "pull": pull["number"], "user": BOT, **comment}
            )
        return {"id": self.new_id(), "state": "COMMENTED"}

    def _diff_lines(self, pull: Row, path: str) -> set[int]:
        try:
            text = self.git("diff", "-U3", f"main...{pull['head']['ref']}", "--", path)
        except subprocess.CalledProcessError:
            return set()
        lines = set[int]()
        for start, count in re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", text, re.MULTILINE):
            lines.update(range(int(start), int(start) + int(count or 1)))
        return lines
