"""`python -m darkroom.cli`."""

import sys

from darkroom.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
