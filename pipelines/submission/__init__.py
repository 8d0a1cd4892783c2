"""Submits a run to Kubeflow or Vertex: what is sent, its cache, the two clients, its outcome."""
