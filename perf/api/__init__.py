"""What requests to the API cost: a run that is read, and one that is started."""
