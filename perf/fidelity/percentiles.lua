-- wrk's own figures to more digits than it prints.
function done(summary, latency)
   io.write(string.format('{"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d}\n',
      summary.requests, summary.duration, latency:percentile(50), latency:percentile(99)))
end
