"""The program that JavaScript and TypeScript extensions run in, and what it is run with."""
