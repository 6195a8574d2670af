"""The emulated network between the load tool and the server of a trial, on one host."""
