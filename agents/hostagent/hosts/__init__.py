"""The hosts of a job: the lead controls the processes on all of them through followers."""
