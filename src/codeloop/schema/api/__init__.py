"""Arguments and results of operations, besides stored types."""
