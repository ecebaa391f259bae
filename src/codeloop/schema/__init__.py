"""Frozen structs: what is stored, streamed and sent."""
