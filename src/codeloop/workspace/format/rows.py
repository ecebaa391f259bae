"""The table of built-in formatters: add a formatter by adding a row."""

from msgspec import Struct

PYTHON = (".py", ".pyi")
SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
PAGES = (".html", ".htm", ".css", ".scss", ".sass", ".less", ".vue", ".svelte", ".json", ".jsonc", ".graphql", ".gql")
TEXTS = (".yaml", ".yml", ".md", ".mdx")
C_LIKE = (".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".ino", ".m", ".mm")
RUBY = (".rb", ".rake", ".gemspec", ".ru")
FILE, EDITION = "$FILE", "$EDITION"


class FormatterRow(Struct, frozen=True):
    """A built-in formatter.

    `command`: its program by name, and its arguments. It reads the text on its stdin, or in `$FILE`, and writes it
    formatted on its stdout; `in_place`: it changes `$FILE` instead. `$EDITION` is that of Rust in `Cargo.toml`.
    `markers`: files that show that a project uses it; `name:text`: a file of this name that contains this text.
    """

    name: str
    extensions: tuple[str, ...]
    command: tuple[str, ...]
    markers: tuple[str, ...] = ()
    in_place: bool = False


ROWS = (
    FormatterRow(
        "black",
        PYTHON,
        ("black", "--quiet", "--stdin-filename", FILE, "-"),
        ("pyproject.toml:[tool.black",),
    ),
    FormatterRow("yapf", PYTHON, ("yapf",), (".style.yapf", "pyproject.toml:[tool.yapf", "setup.cfg:[yapf")),
    FormatterRow(
        "ruff",
        PYTHON,
        ("ruff", "format", "--quiet", "--force-exclude", "--stdin-filename", FILE, "-"),
        ("ruff.toml", ".ruff.toml", "pyproject.toml:[tool.ruff"),
    ),
    FormatterRow("uv", PYTHON, ("uv", "format", "--", "--quiet", "--stdin-filename", FILE, "-")),
    FormatterRow(
        "biome",
        (*SCRIPTS, ".json", ".jsonc", ".css", ".graphql", ".gql", ".html", ".vue", ".svelte", ".astro"),
        ("biome", "format", f"--stdin-file-path={FILE}"),
        ("biome.json", "biome.jsonc", ".biome.json", ".biome.jsonc"),
    ),
    FormatterRow(
        "oxfmt",
        (*SCRIPTS, *PAGES, *TEXTS, ".toml"),
        ("oxfmt", f"--stdin-filepath={FILE}"),
        (".oxfmtrc.json", ".oxfmtrc.jsonc"),
    ),
    FormatterRow(
        "dprint",
        (*SCRIPTS, *PAGES, *TEXTS, ".toml"),
        ("dprint", "fmt", "--stdin", FILE),
        ("dprint.json", "dprint.jsonc", ".dprint.json", ".dprint.jsonc"),
    ),
    FormatterRow(
        "prettier",
        (*SCRIPTS, *PAGES, *TEXTS, ".astro", ".hbs", ".json5"),
        ("prettier", "--stdin-filepath", FILE),
        (
            *(f".prettierrc{end}" for end in ("", ".json", ".yml", ".yaml", ".json5", ".js", ".cjs", ".mjs", ".ts")),
            *(".prettierrc.toml", "prettier.config.js", "prettier.config.cjs", "prettier.config.mjs"),
            *("prettier.config.ts", 'package.json:"prettier"'),
        ),
    ),
    FormatterRow("gofmt", (".go",), ("gofmt",), ("go.mod",)),
    FormatterRow(
        "rustfmt", (".rs",), ("rustfmt", "--edition", EDITION), ("rustfmt.toml", ".rustfmt.toml", "Cargo.toml")
    ),
    FormatterRow("buf", (".proto",), ("buf", "format", "--write", FILE), ("buf.yaml",), in_place=True),
    FormatterRow(
        "clang-format",
        (*C_LIKE, ".proto"),
        ("clang-format", f"--assume-filename={FILE}"),
        (".clang-format", "_clang-format"),
    ),
    FormatterRow(
        "shfmt",
        (".sh", ".bash"),
        ("shfmt", "--filename", FILE, "-"),
        (
            *(".editorconfig:[*.sh", ".editorconfig:[*.{sh", ".editorconfig:[*.bash", ".editorconfig:[[shell"),
            *(".editorconfig:shell_variant",),
        ),
    ),
    FormatterRow("zig", (".zig", ".zon"), ("zig", "fmt", "--stdin"), ("build.zig",)),
    FormatterRow(
        "mix",
        (".ex", ".exs", ".eex", ".heex", ".leex", ".neex", ".sface"),
        ("mix", "format", "--stdin-filename", FILE, "-"),
        (".formatter.exs",),
    ),
    FormatterRow("dart", (".dart",), ("dart", "format", FILE), ("pubspec.yaml",), in_place=True),
    FormatterRow(
        "terraform",
        (".tf", ".tfvars"),
        ("terraform", "fmt", "-"),
        (".terraform.lock.hcl", "versions.tf", "terraform.tf", "main.tf"),
    ),
    FormatterRow(
        "nixfmt",
        (".nix",),
        ("nixfmt", FILE),
        ("flake.nix:nixfmt", "treefmt.nix:nixfmt", "treefmt.toml:nixfmt"),
        in_place=True,
    ),
    FormatterRow("ocamlformat", (".ml", ".mli"), ("ocamlformat", "--name", FILE, "-"), (".ocamlformat",)),
    FormatterRow("ktlint", (".kt", ".kts"), ("ktlint", "--format", FILE), (".editorconfig:ktlint_",), in_place=True),
    FormatterRow(
        "standardrb",
        RUBY,
        ("standardrb", "--fix", FILE),
        (".standard.yml", 'Gemfile:"standard"', "Gemfile:'standard'"),
        in_place=True,
    ),
    FormatterRow(
        "rubocop",
        RUBY,
        ("rubocop", "--stdin", FILE, "--autocorrect", "--stderr", "--format", "quiet"),
        (".rubocop.yml",),
    ),
    FormatterRow("htmlbeautifier", (".erb",), ("htmlbeautifier", FILE), ("Gemfile:htmlbeautifier",), in_place=True),
    FormatterRow("pint", (".php",), ("pint", FILE), ("pint.json", "composer.json:laravel/pint"), in_place=True),
    FormatterRow(
        "php-cs-fixer",
        (".php",),
        ("php-cs-fixer", "fix", "--quiet", FILE),
        (".php-cs-fixer.php", ".php-cs-fixer.dist.php"),
        in_place=True,
    ),
    FormatterRow(
        "stylua", (".lua", ".luau"), ("stylua", "--stdin-filepath", FILE, "-"), ("stylua.toml", ".stylua.toml")
    ),
    FormatterRow(
        "taplo", (".toml",), ("taplo", "format", "--stdin-filepath", FILE, "-"), (".taplo.toml", "taplo.toml")
    ),
    FormatterRow(
        "google-java-format",
        (".java",),
        ("google-java-format", "-"),
        (
            *("pom.xml:google-java-format", "build.gradle:googleJavaFormat", "build.gradle:google-java-format"),
            *("build.gradle.kts:googleJavaFormat", "build.gradle.kts:google-java-format"),
        ),
    ),
    FormatterRow("gleam", (".gleam",), ("gleam", "format", "--stdin"), ("gleam.toml",)),
    FormatterRow("fourmolu", (".hs",), ("fourmolu", "--stdin-input-file", FILE), ("fourmolu.yaml", ".fourmolu.yaml")),
    FormatterRow("ormolu", (".hs",), ("ormolu", "--stdin-input-file", FILE), (".ormolu",)),
    FormatterRow(
        "cljfmt",
        (".clj", ".cljs", ".cljc", ".edn"),
        ("cljfmt", "fix", "--quiet", FILE),
        (".cljfmt.edn", "cljfmt.edn"),
        in_place=True,
    ),
    FormatterRow("scalafmt", (".scala", ".sbt", ".sc"), ("scalafmt", "--stdin", "--quiet"), (".scalafmt.conf",)),
    FormatterRow("swiftformat", (".swift",), ("swiftformat", "stdin", "--stdinpath", FILE), (".swiftformat",)),
    FormatterRow(
        "swift-format", (".swift",), ("swift-format", "format", "-i", FILE), (".swift-format",), in_place=True
    ),
    FormatterRow("elm-format", (".elm",), ("elm-format", "--stdin"), ("elm.json",)),
    FormatterRow("crystal", (".cr",), ("crystal", "tool", "format", "-"), ("shard.yml",)),
    FormatterRow("dfmt", (".d", ".di"), ("dfmt", "--inplace", FILE), (".editorconfig:dfmt_",), in_place=True),
    FormatterRow("air", (".r", ".R"), ("air", "format", FILE), ("air.toml", ".air.toml"), in_place=True),
    FormatterRow(
        "latexindent",
        (".tex", ".sty", ".cls"),
        ("latexindent", "--silent", "--logfile=/dev/null", FILE),
        ("latexindent.yaml", ".latexindent.yaml", "localSettings.yaml"),
    ),
)
"""In this order: of several that a project has for a file, the first one formats it."""

FIXERS = frozenset(("eslint", "stylelint", "oxlint", "ruff", "rubocop", "standardrb", "ktlint"))
"""Programs that exit with 1 when problems are left that they can't fix."""
