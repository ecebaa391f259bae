"""Markdown as rows, while it is still being written: what is finished is never looked at again."""
