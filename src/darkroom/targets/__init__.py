"""What an image is labelled with: a package for each kind of target (part: core)."""
