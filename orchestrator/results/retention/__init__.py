"""How long results are kept, and what is kept for ever."""
