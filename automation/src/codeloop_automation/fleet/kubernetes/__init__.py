"""Fleet jobs in a Kubernetes cluster: the driver, which creates a Job for each of them,
and the worker in its pod.
"""
