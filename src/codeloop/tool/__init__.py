"""What a tool is (`tool.py`), the tools of a project (`toolbox.py`),
and the built-in tools (`builtin/`).
"""
