"""Lines drawn from the grammar of bash, bent towards what executes: quotes, newlines, expansions,
assignments, git.
"""

import random
from collections.abc import Callable, Sequence

NAMES = ("echo", "ls", "cat", "git", "rm", "evil", "printf", "test", "[", ":", "true", "cd", "head")
ARGUMENTS = (
    "a",
    "status",
    "push",
    "-x",
    "--",
    "-f",
    "CANARY",
    "a b",
    "x=1",
    "*",
    "?",
    "~",
    "-c",
    "a.txt",
    "../a",
    "-exec",
    "#",
    "",
)
SCRIPTS = (
    "rm a",
    "evil",
    "git push",
    "echo x; rm a",
    "$(evil)",
    "a[$(rm a)]",
    "`evil`",
    ": > CANARY",
)
ASSIGNED = (
    "A",
    "LC_ALL",
    "TZ",
    "PATH",
    "HOME",
    "IFS",
    "GIT_DIR",
    "GIT_PAGER",
    "BASH_ENV",
    "ENV",
    "PS4",
    "a[0]",
    "NO_COLOR",
)
VALUES = ("1", "C", ".", "evil", "'a b'", '"$x"', "$(evil)", "'a[$(evil)]'", "$x", "a\\\nb", "")
GIT = (
    "-C .",
    "-c alias.status=!evil",
    "--git-dir=.",
    "--no-pager",
    "-p",
    "--exec-path=.",
    "-c core.pager=evil",
    "",
)
_WRAPPERS = """
env; env -i; env A=1; nice; timeout 9; command; builtin; exec; xargs; xargs -I{}; time; !; nohup; sh -c;
bash -c; eval; find . -exec; setsid -w; stdbuf -o0; trap; coproc; jobs -x; compgen -C; hash -p; let; declare;
export; unset; read; printf -v; test -v; mapfile -C; source; .; alias; set --; shopt -s
"""
WRAPPERS = tuple(wrapper.strip() for wrapper in _WRAPPERS.split(";"))
ENDS = (
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "\n",
    "\n\n",
    ";\n",
    " \\\n",
    "\\\n",
    "\r\n",
    "\t",
    ";;",
    "\v",
    "\f",
    "\u00a0",
    "\u2028",
)
REDIRECTS = (
    "> CANARY",
    ">> CANARY",
    ">|CANARY",
    "<> CANARY",
    "&> CANARY",
    ">& CANARY",
    "2> CANARY",
    "> /dev/null",
    "2>&1",
    "< a",
    "<a",
    "{fd}> CANARY",
    "<<< x",
    "<<< $(evil)",
    "<<E\nx\nE\n",
    "<<'E'\n$(evil)\nE\n",
    "<<E\n$(evil)\nE\n",
    "<<-E\n\tx\n\tE\n",
    "<(evil)",
    "> >(evil)",
    "2>/dev/null",
    ">CAN''ARY",
    "> $x",
    '> "$x"',
    "> out/../CANARY",
    ">&2",
    "<&0",
    ">&-",
    "3>&1",
)


class LineGenerator:
    """Draws lines; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def line(self) -> str:
        """Return a line: mostly short, sometimes with a part that was damaged."""
        text = self._list(self._random.choice((1, 1, 1, 2, 2, 3)))
        return self._damaged(text) if self._random.random() < 0.15 else text

    def _one(self, *choices: Callable[[], str]) -> str:
        return self._random.choice(choices)()

    def _of(self, values: Sequence[str]) -> str:
        return self._random.choice(values)

    def _list(self, length: int, depth: int = 0) -> str:
        parts = [self._command(depth)]
        for _ in range(length - 1):
            parts += [
                self._of(("", " ")),
                self._of(ENDS),
                self._of(("", " ")),
                self._command(depth),
            ]
        return "".join(parts)

    def _command(self, depth: int) -> str:
        roll = self._random.random()
        if roll < 0.1 and depth < 3:
            return self._compound(depth)
        if roll < 0.2:
            return f"{self._of(WRAPPERS)} {self._wrapped(depth)}"
        parts = [
            f"{self._of(ASSIGNED)}={self._of(VALUES)}"
            for _ in range(self._random.choice((0, 0, 0, 0, 1, 2)))
        ]
        name = self._of(NAMES)
        parts.append(self._quoted(name) if roll < 0.5 else name)
        if name == "git":
            parts += [self._of(GIT), "status" if roll < 0.9 else self._of(ARGUMENTS)]
        parts += [self._word(depth) for _ in range(self._random.choice((0, 1, 1, 2, 3)))]
        if self._random.random() < 0.2:
            parts.insert(self._random.randrange(len(parts) + 1), self._of(REDIRECTS))
        return " ".join(part for part in parts if part)

    def _wrapped(self, depth: int) -> str:
        return self._one(
            lambda: self._command(depth + 1) if depth < 3 else "evil",
            lambda: f"'{self._of(SCRIPTS)}'",
            lambda: f'"{self._of(SCRIPTS)}"',
            lambda: "evil {} ;",
            lambda: "evil",
        )

    def _compound(self, depth: int) -> str:
        body = self._list(self._random.choice((1, 2)), depth + 1)
        return self._of(
            (
                f"( {body} )",
                f"{{ {body}; }}",
                f"if {body}; then echo a; fi",
                f"for x in a; do {body}; done",
                f"while {body}; do break; done",
                f"case a in a) {body};; esac",
                f"f() {{ {body}; }}; f",
                f"echo() {{ {body}; }}; echo a",
                f"[[ a ]] && {body}",
                f"((1)) && {body}",
                f"! {body}",
                f"time {body}",
                f"echo $({body})",
                f"echo `{body}`",
                f'echo "$({body})"',
                f"cat <({body})",
            )
        )

    def _word(self, depth: int) -> str:
        text = self._of(ARGUMENTS)
        return self._one(
            lambda: text,
            lambda: self._quoted(text),
            lambda: self._quoted(text) + self._quoted(self._of(ARGUMENTS)),
            lambda: self._of(
                (
                    "$x",
                    '"$x"',
                    "${x}",
                    '"${x:-a}"',
                    "$((1))",
                    "$[1]",
                    "${x[0]}",
                    "$'a'",
                    '$"a"',
                    "${!x}",
                    "$@",
                    "$#",
                    "${x@P}",
                )
            ),
            lambda: self._of(
                (
                    "{a,b}",
                    "{a..c}",
                    "~/a",
                    "~+",
                    "~root",
                    "*.txt",
                    "[ab]",
                    "!(a)",
                    "a=~",
                    "a:b",
                    "a\\ b",
                    "\\a",
                    "a\\",
                )
            ),
            lambda: f"$({self._of(SCRIPTS)})" if depth < 3 else "a",
            lambda: f"`{self._of(SCRIPTS)}`" if "`" not in text else "a",
            lambda: f"'{self._of(SCRIPTS)}'",
            lambda: f'"{self._of(SCRIPTS)}"',
        )

    def _quoted(self, text: str) -> str:
        """Return the text quoted in one of the ways there are, some of them wrong."""
        middle = len(text) // 2
        return self._of(
            (
                f"'{text}'",
                f'"{text}"',
                f"$'{text}'",
                text[:middle] + "''" + text[middle:],
                text[:middle] + "\\" + text[middle:],
                text[:middle] + "\\\n" + text[middle:],
                "".join(f"\\{char}" for char in text),
                f"{text[:middle]}'{text[middle:]}'",
                text,
                "$'" + "".join(f"\\x{ord(char):02x}" for char in text) + "'",
                f"'{text}",
                f'"{text}',
                text + "\n\\",
                text + "\\\n",
            )
        )

    def _damaged(self, text: str) -> str:
        """Return the text with a piece left out, doubled or put in."""
        at = self._random.randrange(len(text) + 1)
        end = min(len(text), at + self._random.choice((1, 1, 2, 5)))
        piece = self._of(
            (
                "'",
                '"',
                "\\",
                "\n",
                "`",
                "$(",
                ")",
                "${",
                "}",
                "#",
                " ",
                ";",
                "&",
                "|",
                "\\\n",
                "\x01",
                "\x7f",
                "\u0085",
                "\r",
            )
        )
        return self._of(
            (text[:at] + text[end:], text[:end] + text[at:], text[:at] + piece + text[at:])
        )
