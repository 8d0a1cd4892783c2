"""Networks with weights of ImageNet that darkroom builds itself, and files of weights."""
