"""What every benchmark of Pitwall itself needs: rivals, CPU time, the machine, the report."""
