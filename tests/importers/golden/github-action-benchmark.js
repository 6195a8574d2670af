window.BENCHMARK_DATA = {
  "lastUpdate": 1735689600000,
  "repoUrl": "https://example.org/ours/server",
  "entries": {
    "Rust": [
      {
        "commit": {
          "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          "message": "Answer sooner",
          "timestamp": "2024-12-31T23:00:00Z",
          "url": "https://example.org/ours/server/commit/aaaa"
        },
        "date": 1735689600000,
        "tool": "cargo",
        "benches": [
          {"name": "hello", "value": 59874, "range": "± 41,739.5", "unit": "ns/iter"},
          {"name": "hello", "value": 60001, "range": "± 12", "unit": "ns/iter"},
          {"name": "pages", "value": 12.5, "unit": "pages", "extra": "of one run"}
        ]
      }
    ],
    "Page load": [
      {
        "commit": {"id": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},
        "date": 1735693200000,
        "tool": "benchmarkjs",
        "benches": [{"name": "render", "value": 900, "range": "±1.5%", "unit": "ops/sec"}]
      }
    ]
  }
};
