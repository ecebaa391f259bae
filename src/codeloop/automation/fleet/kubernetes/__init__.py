"""The driver that does the jobs of a fleet as Jobs of a Kubernetes cluster."""
