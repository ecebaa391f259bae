"""The table of built-in formatters: add a formatter by adding a row."""

from msgspec import Struct

PYTHON_SUFFIXES = (".py", ".pyi")
SCRIPT_SUFFIXES = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
WEB_SUFFIXES = (
    ".html",
    ".htm",
    ".css",
    ".scss",
    ".sass",
    ".less",
    ".vue",
    ".svelte",
    ".json",
    ".jsonc",
    ".graphql",
    ".gql",
)
TEXT_SUFFIXES = (".yaml", ".yml", ".md", ".mdx")
C_SUFFIXES = (
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".c++",
    ".h",
    ".hh",
    ".hpp",
    ".hxx",
    ".h++",
    ".ino",
    ".m",
    ".mm",
)
RUBY_SUFFIXES = (".rb", ".rake", ".gemspec", ".ru")
# What is replaced in the words of a command: by the file's path, and by the edition of Rust.
FILE_PLACEHOLDER, EDITION_PLACEHOLDER = "$FILE", "$EDITION"


class FormatterRow(Struct, frozen=True):
    """A built-in formatter.

    `command`: its program by name, and its arguments. It reads the text on its stdin, or in
    `$FILE`, and writes it formatted on its stdout; `in_place`: it changes `$FILE` instead.
    `$EDITION` is that of Rust in `Cargo.toml`.
    `markers`: files that show that a project uses it; `name:text`: a file of this name that
    contains this text. Without markers, as for `uv`, it is used only if the configuration names it.
    """

    name: str
    extensions: tuple[str, ...]
    command: tuple[str, ...]
    markers: tuple[str, ...] = ()
    in_place: bool = False


# The order matters: of several formatters that a project has for a file, the first one formats it.
FORMATTER_ROWS = (
    FormatterRow(
        "black",
        PYTHON_SUFFIXES,
        ("black", "--quiet", "--stdin-filename", FILE_PLACEHOLDER, "-"),
        ("pyproject.toml:[tool.black",),
    ),
    FormatterRow(
        "yapf",
        PYTHON_SUFFIXES,
        ("yapf",),
        (".style.yapf", "pyproject.toml:[tool.yapf", "setup.cfg:[yapf"),
    ),
    FormatterRow(
        "ruff",
        PYTHON_SUFFIXES,
        ("ruff", "format", "--quiet", "--force-exclude", "--stdin-filename", FILE_PLACEHOLDER, "-"),
        ("ruff.toml", ".ruff.toml", "pyproject.toml:[tool.ruff"),
    ),
    FormatterRow(
        "uv",
        PYTHON_SUFFIXES,
        ("uv", "format", "--", "--quiet", "--stdin-filename", FILE_PLACEHOLDER, "-"),
    ),
    FormatterRow(
        "biome",
        (
            *SCRIPT_SUFFIXES,
            ".json",
            ".jsonc",
            ".css",
            ".graphql",
            ".gql",
            ".html",
            ".vue",
            ".svelte",
            ".astro",
        ),
        ("biome", "format", f"--stdin-file-path={FILE_PLACEHOLDER}"),
        ("biome.json", "biome.jsonc", ".biome.json", ".biome.jsonc"),
    ),
    FormatterRow(
        "oxfmt",
        (*SCRIPT_SUFFIXES, *WEB_SUFFIXES, *TEXT_SUFFIXES, ".toml"),
        ("oxfmt", f"--stdin-filepath={FILE_PLACEHOLDER}"),
        (".oxfmtrc.json", ".oxfmtrc.jsonc"),
    ),
    FormatterRow(
        "dprint",
        (*SCRIPT_SUFFIXES, *WEB_SUFFIXES, *TEXT_SUFFIXES, ".toml"),
        ("dprint", "fmt", "--stdin", FILE_PLACEHOLDER),
        ("dprint.json", "dprint.jsonc", ".dprint.json", ".dprint.jsonc"),
    ),
    FormatterRow(
        "prettier",
        (*SCRIPT_SUFFIXES, *WEB_SUFFIXES, *TEXT_SUFFIXES, ".astro", ".hbs", ".json5"),
        ("prettier", "--stdin-filepath", FILE_PLACEHOLDER),
        (
            *(
                f".prettierrc{end}"
                for end in ("", ".json", ".yml", ".yaml", ".json5", ".js", ".cjs", ".mjs", ".ts")
            ),
            *(
                ".prettierrc.toml",
                "prettier.config.js",
                "prettier.config.cjs",
                "prettier.config.mjs",
            ),
            *("prettier.config.ts", 'package.json:"prettier"'),
        ),
    ),
    FormatterRow("gofmt", (".go",), ("gofmt",), ("go.mod",)),
    FormatterRow(
        "rustfmt",
        (".rs",),
        ("rustfmt", "--edition", EDITION_PLACEHOLDER),
        ("rustfmt.toml", ".rustfmt.toml", "Cargo.toml"),
    ),
    FormatterRow(
        "buf",
        (".proto",),
        ("buf", "format", "--write", FILE_PLACEHOLDER),
        ("buf.yaml",),
        in_place=True,
    ),
    FormatterRow(
        "clang-format",
        (*C_SUFFIXES, ".proto"),
        ("clang-format", f"--assume-filename={FILE_PLACEHOLDER}"),
        (".clang-format", "_clang-format"),
    ),
    FormatterRow(
        "shfmt",
        (".sh", ".bash"),
        ("shfmt", "--filename", FILE_PLACEHOLDER, "-"),
        (
            *(
                ".editorconfig:[*.sh",
                ".editorconfig:[*.{sh",
                ".editorconfig:[*.bash",
                ".editorconfig:[[shell",
            ),
            *(".editorconfig:shell_variant",),
        ),
    ),
    FormatterRow("zig", (".zig", ".zon"), ("zig", "fmt", "--stdin"), ("build.zig",)),
    FormatterRow(
        "mix",
        (".ex", ".exs", ".eex", ".heex", ".leex", ".neex", ".sface"),
        ("mix", "format", "--stdin-filename", FILE_PLACEHOLDER, "-"),
        (".formatter.exs",),
    ),
    FormatterRow(
        "dart", (".dart",), ("dart", "format", FILE_PLACEHOLDER), ("pubspec.yaml",), in_place=True
    ),
    FormatterRow(
        "terraform",
        (".tf", ".tfvars"),
        ("terraform", "fmt", "-"),
        (".terraform.lock.hcl", "versions.tf", "terraform.tf", "main.tf"),
    ),
    FormatterRow(
        "nixfmt",
        (".nix",),
        ("nixfmt", FILE_PLACEHOLDER),
        ("flake.nix:nixfmt", "treefmt.nix:nixfmt", "treefmt.toml:nixfmt"),
        in_place=True,
    ),
    FormatterRow(
        "ocamlformat",
        (".ml", ".mli"),
        ("ocamlformat", "--name", FILE_PLACEHOLDER, "-"),
        (".ocamlformat",),
    ),
    FormatterRow(
        "ktlint",
        (".kt", ".kts"),
        ("ktlint", "--format", FILE_PLACEHOLDER),
        (".editorconfig:ktlint_",),
        in_place=True,
    ),
    FormatterRow(
        "standardrb",
        RUBY_SUFFIXES,
        ("standardrb", "--fix", FILE_PLACEHOLDER),
        (".standard.yml", 'Gemfile:"standard"', "Gemfile:'standard'"),
        in_place=True,
    ),
    FormatterRow(
        "rubocop",
        RUBY_SUFFIXES,
        ("rubocop", "--stdin", FILE_PLACEHOLDER, "--autocorrect", "--stderr", "--format", "quiet"),
        (".rubocop.yml",),
    ),
    FormatterRow(
        "htmlbeautifier",
        (".erb",),
        ("htmlbeautifier", FILE_PLACEHOLDER),
        ("Gemfile:htmlbeautifier",),
        in_place=True,
    ),
    FormatterRow(
        "pint",
        (".php",),
        ("pint", FILE_PLACEHOLDER),
        ("pint.json", "composer.json:laravel/pint"),
        in_place=True,
    ),
    FormatterRow(
        "php-cs-fixer",
        (".php",),
        ("php-cs-fixer", "fix", "--quiet", FILE_PLACEHOLDER),
        (".php-cs-fixer.php", ".php-cs-fixer.dist.php"),
        in_place=True,
    ),
    FormatterRow(
        "stylua",
        (".lua", ".luau"),
        ("stylua", "--stdin-filepath", FILE_PLACEHOLDER, "-"),
        ("stylua.toml", ".stylua.toml"),
    ),
    FormatterRow(
        "taplo",
        (".toml",),
        ("taplo", "format", "--stdin-filepath", FILE_PLACEHOLDER, "-"),
        (".taplo.toml", "taplo.toml"),
    ),
    FormatterRow(
        "google-java-format",
        (".java",),
        ("google-java-format", "-"),
        (
            *(
                "pom.xml:google-java-format",
                "build.gradle:googleJavaFormat",
                "build.gradle:google-java-format",
            ),
            *("build.gradle.kts:googleJavaFormat", "build.gradle.kts:google-java-format"),
        ),
    ),
    FormatterRow("gleam", (".gleam",), ("gleam", "format", "--stdin"), ("gleam.toml",)),
    FormatterRow(
        "fourmolu",
        (".hs",),
        ("fourmolu", "--stdin-input-file", FILE_PLACEHOLDER),
        ("fourmolu.yaml", ".fourmolu.yaml"),
    ),
    FormatterRow(
        "ormolu", (".hs",), ("ormolu", "--stdin-input-file", FILE_PLACEHOLDER), (".ormolu",)
    ),
    FormatterRow(
        "cljfmt",
        (".clj", ".cljs", ".cljc", ".edn"),
        ("cljfmt", "fix", "--quiet", FILE_PLACEHOLDER),
        (".cljfmt.edn", "cljfmt.edn"),
        in_place=True,
    ),
    FormatterRow(
        "scalafmt",
        (".scala", ".sbt", ".sc"),
        ("scalafmt", "--stdin", "--quiet"),
        (".scalafmt.conf",),
    ),
    FormatterRow(
        "swiftformat",
        (".swift",),
        ("swiftformat", "stdin", "--stdinpath", FILE_PLACEHOLDER),
        (".swiftformat",),
    ),
    FormatterRow(
        "swift-format",
        (".swift",),
        ("swift-format", "format", "-i", FILE_PLACEHOLDER),
        (".swift-format",),
        in_place=True,
    ),
    FormatterRow("elm-format", (".elm",), ("elm-format", "--stdin"), ("elm.json",)),
    FormatterRow("crystal", (".cr",), ("crystal", "tool", "format", "-"), ("shard.yml",)),
    FormatterRow(
        "dfmt",
        (".d", ".di"),
        ("dfmt", "--inplace", FILE_PLACEHOLDER),
        (".editorconfig:dfmt_",),
        in_place=True,
    ),
    FormatterRow(
        "air",
        (".r", ".R"),
        ("air", "format", FILE_PLACEHOLDER),
        ("air.toml", ".air.toml"),
        in_place=True,
    ),
    FormatterRow(
        "latexindent",
        (".tex", ".sty", ".cls"),
        ("latexindent", "--silent", "--logfile=/dev/null", FILE_PLACEHOLDER),
        ("latexindent.yaml", ".latexindent.yaml", "localSettings.yaml"),
    ),
)

# Programs that exit with 1 when problems are left that they can't fix. Some have no row: commands
# that the user configures are looked for here, too.
FIXER_PROGRAMS = frozenset(
    ("eslint", "stylelint", "oxlint", "ruff", "rubocop", "standardrb", "ktlint")
)
