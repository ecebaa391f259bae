"""The part of GitLab's REST API that `codeloop ci` uses."""

import copy
import re
import subprocess
from dataclasses import dataclass, field
from typing import Any

from tests.automation.ci.host_server import Handle, HostServer, Refused, Row

PROJECT = "7"
BOT = {"id": 900, "username": "project_7_bot_ab12"}
ADA, EVE = {"id": 1, "username": "ada"}, {"id": 2, "username": "eve"}


@dataclass
class GitLabServer(HostServer):
    """A project with issues and merge requests. `levels`: access of members, by number."""

    git_user: str = "oauth2"
    levels: dict[int, int] = field(default_factory=lambda: {1: 30, 2: 10})
    issues: dict[int, Row] = field(default_factory=dict[int, Row])
    merges: dict[int, Row] = field(default_factory=dict[int, Row])
    notes: list[Row] = field(default_factory=list[Row])

    def check_headers(self, headers: dict[str, str]) -> None:
        if headers.get("private-token") != self.token:
            raise Refused(401, {"message": "401 Unauthorized"})

    def routes(self) -> list[tuple[str, str, Handle]]:
        base = rf"/api/v4/projects/(?:{PROJECT}|acme%2Fcalc)"
        thread = rf"{base}/(issues|merge_requests)/(\d+)"
        return [
            ("GET", "/api/v4/user", lambda *_: BOT),
            ("GET", base, lambda *_: {"id": int(PROJECT), "default_branch": "main"}),
            ("GET", rf"{base}/members/all/(\d+)", self._member),
            ("GET", rf"{base}/jobs/(\d+)", lambda m, *_: {"id": int(m[1]), "status": "failed"}),
            ("GET", thread, lambda m, *_: self._thread(m)),
            ("PUT", rf"{base}/(merge_requests)/(\d+)", self._edit_merge),
            ("GET", rf"{thread}/notes", lambda m, *_: self._notes_of(m)),
            ("POST", rf"{thread}/notes", self._note),
            ("GET", rf"{thread}/notes/(\d+)", lambda m, *_: self._find_note(m)),
            ("PUT", rf"{thread}/notes/(\d+)", self._edit_note),
            ("GET", rf"{base}/merge_requests", self._list_merges),
            ("POST", rf"{base}/merge_requests", self._open_merge),
            ("POST", rf"{base}/(merge_requests)/(\d+)/discussions", self._discuss),
        ]

    def add_issue(self, title: str, text: str) -> int:
        number = len(self.issues) + 1
        self.issues[number] = {"iid": number, "title": title, "description": text, "author": EVE}
        return number

    def add_merge(
        self, branch: str, title: str = "A change", text: str = "", source: int = int(PROJECT)
    ) -> int:
        number = len(self.merges) + 1
        self.merges[number] = {
            "iid": number,
            "web_url": f"https://gitlab.example/acme/calc/-/merge_requests/{number}",
            "title": title,
            "description": text,
            "state": "opened",
            "author": ADA,
            "source_branch": branch,
            "target_branch": "main",
            "source_project_id": source,
            "target_project_id": int(PROJECT),
            "draft": False,
        }
        return number

    def add_note(self, kind: str, number: int, text: str, author: Row = ADA, **more: Any) -> Row:
        row = {
            "id": self.new_id(),
            "body": text,
            "author": author,
            "system": False,
            "on": (kind, number),
            **more,
        }
        row["created_at"] = row["updated_at"] = self.now()
        self.notes.append(row)
        return row

    def own_notes(self, kind: str, number: int) -> list[str]:
        """Return the texts of the bot's notes that are not on a line."""
        return [
            row["body"]
            for row in self.notes
            if row["on"] == (kind, number) and row["author"] == BOT and "type" not in row
        ]

    def webhook(self, kind: str, number: int, note: Row) -> Row:
        """Return the body that a webhook for comments sends about a note of ada's."""
        thread = self.merges[number] if kind == "merge_requests" else self.issues[number]
        # Webhooks write times in another form than the API.
        # What is changed from now on is not in the event.
        moment = note["created_at"].replace("T", " ").replace("Z", " UTC")
        attributes = {
            "id": note["id"],
            "note": note["body"],
            "action": "create",
            "created_at": moment,
        }
        return copy.deepcopy(
            {
                "object_kind": "note",
                "user": ADA,
                "object_attributes": attributes,
                "merge_request" if kind == "merge_requests" else "issue": thread,
            }
        )

    def _thread(self, match: re.Match[str]) -> Row:
        rows = self.issues if match[1] == "issues" else self.merges
        if int(match[2]) not in rows:
            raise Refused(404, {"message": "404 Not found"})
        row = rows[int(match[2])]
        return self._fresh(row) if match[1] == "merge_requests" else row

    def _fresh(self, row: Row) -> Row:
        sha, start = self.sha(row["source_branch"]), self.sha("main")
        return {
            **row,
            "sha": sha,
            "diff_refs": {"base_sha": start, "head_sha": sha, "start_sha": start},
        }

    def _member(self, match: re.Match[str], *_: Any) -> Row:
        if int(match[1]) not in self.levels:
            raise Refused(404, {"message": "404 Not found"})
        return {"id": int(match[1]), "access_level": self.levels[int(match[1])], "state": "active"}

    def _notes_of(self, match: re.Match[str]) -> list[Row]:
        self._thread(match)
        return [row for row in self.notes if row["on"] == (match[1], int(match[2]))]

    def _note(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        self._thread(match)
        self.take_fields(body, {"body": str}, {"internal": bool})
        return self.add_note(match[1], int(match[2]), body["body"], BOT)

    def _edit_note(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        self.take_fields(body, {"body": str}, {})
        row = self._find_note(match)
        if row["author"] != BOT:
            raise Refused(403, {"message": "403 Forbidden"})
        row["body"], row["updated_at"] = body["body"], self.now()
        return row

    def _find_note(self, match: re.Match[str]) -> Row:
        row = next((each for each in self._notes_of(match) if each["id"] == int(match[3])), None)
        if row is None:
            raise Refused(404, {"message": "404 Not found"})
        return row

    def _list_merges(self, _: re.Match[str], query: dict[str, str], __: Row) -> list[Row]:
        if query.get("state") != "opened" or not query.get("source_branch"):
            self.break_rule(f"GET merge_requests {query}")
        return [
            self._fresh(row)
            for row in self.merges.values()
            if row["source_branch"] == query["source_branch"]
        ]

    def _open_merge(self, _: re.Match[str], __: dict[str, str], body: Row) -> Row:
        self.take_fields(
            body, {"source_branch": str, "target_branch": str, "title": str}, {"description": str}
        )
        if not self.sha(body["source_branch"]):
            raise Refused(400, {"message": {"source_branch": ["does not exist"]}})
        if any(row["source_branch"] == body["source_branch"] for row in self.merges.values()):
            raise Refused(
                409,
                {"message": ["Another open merge request already exists for this source branch"]},
            )
        return self._fresh(
            self.merges[
                self.add_merge(body["source_branch"], body["title"], body.get("description", ""))
            ]
        )

    def _edit_merge(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        self.take_fields(body, {}, {"title": str, "description": str})
        self._thread(match)
        self.merges[int(match[2])].update(body)
        return self._thread(match)

    def _discuss(self, match: re.Match[str], _: dict[str, str], body: Row) -> Row:
        merge = self._thread(match)
        self.take_fields(body, {"body": str, "position": dict}, {})
        position = body["position"]
        wanted = {**merge["diff_refs"], "position_type": "text"}
        if any(position.get(name) != value for name, value in wanted.items()) or {*position} - {
            *wanted
        } != {
            "new_path",
            "old_path",
            "new_line",
        }:
            raise Refused(400, {"message": "400 Bad request - Note {:position=>incomplete}"})
        if position["new_line"] not in self._new_lines(merge, position["new_path"]):
            raise Refused(
                400,
                {"message": '400 (Bad request) "Note {:line_code=>["can\'t be blank"]}" not given'},
            )
        self.add_note(
            "merge_requests", merge["iid"], body["body"], BOT, type="DiffNote", position=position
        )
        return {"id": f"{self.new_id()}", "individual_note": False}

    def _new_lines(self, merge: Row, path: str) -> set[int]:
        try:
            text = self.git("diff", "-U0", f"main...{merge['source_branch']}", "--", path)
        except subprocess.CalledProcessError:
            return set()
        found = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", text, re.MULTILINE)
        return {int(start) + n for start, count in found for n in range(int(count or 1))}
