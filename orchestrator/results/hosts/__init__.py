"""What measurements say of the hosts: noise, drift, what they can see."""
