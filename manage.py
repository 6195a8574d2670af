#!/usr/bin/env python3
"""Django's command line for Pitwall; `compare-trials` is the command `compare_trials`."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.config.settings")
    program, *words = sys.argv
    if words and not words[0].startswith("-"):
        words[0] = words[0].replace("-", "_")
    execute_from_command_line([program, *words])
