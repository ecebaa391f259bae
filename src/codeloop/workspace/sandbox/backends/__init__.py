"""Programs of the system that make sandboxes, where the launcher may not make namespaces itself."""
