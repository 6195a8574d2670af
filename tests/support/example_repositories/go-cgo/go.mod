module example.org/checksums

go 1.22
