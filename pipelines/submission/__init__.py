"""From a configuration to a run on a cluster."""
