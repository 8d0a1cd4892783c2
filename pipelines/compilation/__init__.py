"""From a configuration to a pipeline file for Kubeflow or Vertex."""
