"""Two sides compared case by case: pairing, intervals, verdicts, mismatches, and their exports."""
