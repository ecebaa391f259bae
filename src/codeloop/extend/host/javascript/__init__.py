"""The host program of JavaScript and TypeScript extensions, and its runtime."""
