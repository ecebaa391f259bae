"""The loop, one model step, tool calls, projection."""
