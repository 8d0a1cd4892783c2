"""From any list of images to a manifest: ordered rows with keys, splits and labels (part: make)."""
