"""Submits a run to Kubeflow or Vertex: its content, its cache, the two clients, its outcome."""
