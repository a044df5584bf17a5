"""`python -m hbmp` is `hbmp`."""

import sys

from hbmp.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
