"""The program that forks commands. Only the standard library: it starts in 15 ms and runs inside sandboxes."""
