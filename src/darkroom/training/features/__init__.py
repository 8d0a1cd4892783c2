"""What a frozen base makes of images: computed once, kept by content, and trained on."""
