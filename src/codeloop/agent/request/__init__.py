"""Building of requests to the model."""
