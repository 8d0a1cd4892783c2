"""The gallery: every row, the findings and their images in one page that works by itself."""
