"""The API under made-up requests: no answer is a mistake of ours, none is not as documented."""
