"""`python3 -m hostagent`: the same as the zip application."""

import sys

from .cli import main

sys.exit(main())
