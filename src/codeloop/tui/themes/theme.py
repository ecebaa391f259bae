"""The type of a theme: a colour for each purpose, with the names of OpenCode's theme files."""

from msgspec import Struct


class ColourTheme(Struct, frozen=True, rename="camel"):
    """Colours as `#rrggbb`, a colour of the terminal (`ansi_red`), or "" for the terminal's own."""

    primary: str
    secondary: str
    accent: str
    error: str
    warning: str
    success: str
    info: str
    text: str
    text_muted: str
    background: str
    background_panel: str
    background_element: str
    border: str
    border_active: str
    border_subtle: str
    diff_added: str
    diff_removed: str
    diff_context: str
    diff_hunk_header: str
    diff_highlight_added: str
    diff_highlight_removed: str
    diff_added_bg: str
    diff_removed_bg: str
    diff_context_bg: str
    diff_line_number: str
    diff_added_line_number_bg: str
    diff_removed_line_number_bg: str
    markdown_text: str
    markdown_heading: str
    markdown_link: str
    markdown_link_text: str
    markdown_code: str
    markdown_block_quote: str
    markdown_emph: str
    markdown_strong: str
    markdown_horizontal_rule: str
    markdown_list_item: str
    markdown_list_enumeration: str
    markdown_image: str
    markdown_image_text: str
    markdown_code_block: str
    syntax_comment: str
    syntax_keyword: str
    syntax_function: str
    syntax_variable: str
    syntax_string: str
    syntax_number: str
    syntax_type: str
    syntax_operator: str
    syntax_punctuation: str
