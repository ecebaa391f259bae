"""The agent loop: one step, tool calls, requests, subagents."""
