"""`python3 -m cli.pitwall` in a checkout."""

import sys

from .main import main

sys.exit(main())
