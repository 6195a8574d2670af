"""How fast a client must be, and how much memory a process uses for clients."""

import time

#: Time limit from the first byte of a request to the end of its head.
HEAD_S = 10.0
#: The longest pause of a body or an answer.
GRACE_S = 10.0
#: The lowest rate of a transfer.
LEAST_BYTES_A_SECOND = 32 * 1024
#: Time limit of a new connection that sends nothing; browsers open some in advance.
SILENT_S = 20.0
#: While all places are taken, a connection without a whole request keeps its place for this time.
ENTRY_S = 1.0
#: After its last answer, a connection waits so long for the client to close it.
LINGER_S = 2.0
#: A request with a long body waits so long for a thread before it is refused.
UPLOAD_WAIT_S = 30.0
#: The most bytes of unfinished requests in a process.
MOST_INCOMING_BYTES = 64 * 2**20
#: The most unsent bytes of one answer before its thread waits for the client.
MOST_UNSENT_BYTES = 2 * 2**20
#: The same, once the process or the client has reached its limit of unsent bytes.
LEAST_UNSENT_BYTES = 64 * 1024
#: The kernel's send buffer of an answer. A larger one would hide whether the client reads.
KERNEL_UNSENT_BYTES = 128 * 1024


def now() -> float:
    return time.monotonic()


def extend_deadline(deadline: float, moved: int) -> float:
    """Return the deadline of a transfer after `moved` bytes.

    Bytes extend it by the time that they need at the lowest rate, but never beyond GRACE_S from
    now: fast data is no credit for a later pause.
    """
    return min(deadline + moved / LEAST_BYTES_A_SECOND, now() + GRACE_S)
