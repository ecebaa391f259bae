"""Exports of sessions: HTML, Markdown, trajectories."""
