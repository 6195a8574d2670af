"""How fast a client must be, and how much a process keeps for clients."""

import time

#: From the first byte of a request to the end of its head.
HEAD_S = 10.0
#: The longest that a body or an answer may stand still.
GRACE_S = 10.0
#: The least rate of one that moves.
LEAST_BYTES_A_SECOND = 32 * 1024
#: A new connection that sends nothing, as browsers open them ahead.
SILENT_S = 20.0
#: While all places are taken, a connection keeps its own for so long without a whole request.
ENTRY_S = 1.0
#: A connection that was answered and closed waits so long for its client's end of it.
LINGER_S = 2.0
#: A request with a long body waits so long for a thread before it is refused.
UPLOAD_WAIT_S = 30.0
#: What a process keeps of unfinished requests.
MOST_INCOMING_BYTES = 64 * 2**20
#: What one answer may have unsent before its thread waits for the client.
MOST_UNSENT_BYTES = 2 * 2**20
#: The same, once the process or the client has as many unsent bytes as it may.
LEAST_UNSENT_BYTES = 64 * 1024
#: What the kernel keeps of an answer before it sends it: more would hide whether a client reads.
KERNEL_UNSENT_BYTES = 128 * 1024


def now() -> float:
    return time.monotonic()


def later(deadline: float, moved: int) -> float:
    """The deadline of a transfer after so many bytes of it moved.

    Bytes add the time that they take at the least rate, and never more than GRACE_S from now: what
    was sent fast is no credit for standing still.
    """
    return min(deadline + moved / LEAST_BYTES_A_SECOND, now() + GRACE_S)
