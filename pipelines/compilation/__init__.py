"""Compiles a configuration into the file that Kubeflow or Vertex runs."""
