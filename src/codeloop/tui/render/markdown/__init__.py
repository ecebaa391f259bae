"""Incremental rendering of streaming Markdown: finished blocks are never rendered again."""
