module pitwall.invalid/faithful

go 1.24
