"""Formats sizes and times for rows of the terminal UI.
Formats that other interfaces share: `client/formatting.py`.
"""

from datetime import datetime


def format_size(size: int) -> str:
    """Format a number of bytes: 950 B, 34 kB, 1.2 MB."""
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.0f} kB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"


def format_short_time(ms: int) -> str:
    """Format a time, in milliseconds since the epoch, as local day,
    month and minute: 03 Feb 14:05.
    """
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%d %b %H:%M}"
