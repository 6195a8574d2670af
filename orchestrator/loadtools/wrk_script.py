"""The Lua script of wrk: the exact bytes of the request, and a complete report.

wrk's own report has four percentiles. `done` gets the whole distribution, but its documented
access, `latency(i)`, searches from the start each time. That took 13 s for the 62,705 distinct
values of 6 s with a server that hung now and then. Reading wrk's array through LuaJIT's ffi takes 1
ms. The script compares the array's minimum and maximum with the documented ones before it uses the
array.
"""

from orchestrator.loadtools.model import LoadSpec

LOAD, PRIMER = "load.lua", "primer.lua"
#: Where the script writes the report; without it, it writes none.
OUT = "PITWALL_OUT"
#: wrk does not pass the number of requested connections to a script.
CONNECTIONS = "PITWALL_CONNECTIONS"
#: Requests per second of a primer.
PRIMER_RATE = 10

_REQUEST = """\
local first, host, rest = {first}, {host}, {rest}

-- Called once for each thread: what it returns is sent as it is, so there is no Lua in the load.
wrk.format = function()
   return first .. (host or "Host: " .. wrk.headers["Host"] .. "\\r\\n") .. rest
end
"""

_REPORT = """
local function whole(number)
   return string.format("%.0f", tonumber(number))
end

-- As in wrk 4.1: the array of counts by microsecond.
local function by_array(latency)
   local ffi = require("ffi")
   ffi.cdef("typedef struct { uint64_t count, limit, min, max, data[]; } pitwall_stats;")
   local stats = ffi.cast("pitwall_stats **", latency)[0]
   if stats.min ~= latency.min or stats.max ~= latency.max then return nil end
   local values, counts = {}, {}
   for us = tonumber(stats.min), tonumber(stats.max) do
      if stats.data[us] ~= 0 then
         values[#values + 1], counts[#counts + 1] = whole(us), whole(stats.data[us])
      end
   end
   return values, counts
end

local function by_index(latency)
   local values, counts = {}, {}
   for i = 1, #latency do
      local us, count = latency(i)
      values[i], counts[i] = whole(us), whole(count)
   end
   return values, counts
end

local function distribution(summary, latency)
   if summary.requests == summary.errors.timeout then return {}, {} end
   local known, values, counts = pcall(by_array, latency)
   if known and values then return values, counts end
   return by_index(latency)
end

function done(summary, latency, requests)
   local out = os.getenv("PITWALL_OUT")
   if not out then return end
   local errors = {}
   for _, kind in ipairs({"connect", "read", "write", "status", "timeout"}) do
      errors[#errors + 1] = string.format('"%s": %s', kind, whole(summary.errors[kind]))
   end
   local values, counts = distribution(summary, latency)
   local file = assert(io.open(out, "w"))
   file:write('{"requests": ', whole(summary.requests), ', "duration_us": ',
      whole(summary.duration), ', "bytes": ', whole(summary.bytes), ', "connections": ',
      os.getenv("PITWALL_CONNECTIONS"), ', "errors": {', table.concat(errors, ", "),
      '}, "value_us": [', table.concat(values, ","), '], "count": [', table.concat(counts, ","),
      "]}")
   assert(file:close())
end
"""

_DELAY = """
function delay()
   return {milliseconds}
end
"""


def load_script(spec: LoadSpec) -> str:
    """Return a script that sends the request, and writes a JSON report to $PITWALL_OUT."""
    return _request(spec) + _REPORT


def build_primer(spec: LoadSpec) -> str:
    """Return a script that sends at most PRIMER_RATE requests per second on each connection."""
    return _request(spec) + _DELAY.format(milliseconds=1000 // PRIMER_RATE)


def _request(spec: LoadSpec) -> str:
    body = spec.body or ""
    headers = [(name, value) for name, value in spec.headers if name.lower() != "host"]
    given = {name.lower() for name, _ in spec.headers}
    if "accept-encoding" not in given:
        codings = ", ".join(spec.compression) if spec.compression else "identity"
        headers.append(("accept-encoding", codings))
    if spec.body is not None and "content-length" not in given:
        headers.append(("content-length", str(len(body.encode()))))
    if not spec.keepalive and "connection" not in given:
        headers.append(("connection", "close"))
    own_host = [_build_line(name, value) for name, value in spec.headers if name.lower() == "host"]
    return _REQUEST.format(
        first=quote_lua(f"{spec.method} {spec.path} HTTP/1.1\r\n"),
        host=quote_lua("".join(own_host)) if own_host else "nil",
        rest=quote_lua("".join(_build_line(*header) for header in headers) + "\r\n" + body),
    )


def _build_line(name: str, value: str) -> str:
    return f"{name}: {value}\r\n"


def quote_lua(text: str) -> str:
    """Return a Lua literal of exactly the UTF-8 bytes of `text`."""
    return '"' + "".join(map(_escape_byte, text.encode())) + '"'


def _escape_byte(byte: int) -> str:
    if 32 <= byte < 127 and byte not in b'"\\':
        return chr(byte)
    # Always three digits, so that a following digit is not part of the escape.
    return f"\\{byte:03d}"
