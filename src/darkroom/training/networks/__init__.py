"""Networks with weights of ImageNet that darkroom builds itself, and how their files are read."""
