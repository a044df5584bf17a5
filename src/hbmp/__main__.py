"""`python -m hbmp` is `hbmp`."""

import sys

from hbmp.cli import main

if __name__ == "__main__":
    sys.exit(main())
