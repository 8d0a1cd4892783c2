"""Any number of labels an image: multi-label classification."""
