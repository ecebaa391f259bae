"""Models of servers on this machine: their real context length, and how to increase it."""
