"""The parts of `perf/detection.py`: made and real series, detectors, scores, duels of commits."""
