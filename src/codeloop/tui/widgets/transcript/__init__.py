"""The conversation widget."""
