"""What happens on a host before a trial and while a load runs."""
