"""Clicks of users become sessions: each thread finds where a session starts and numbers the clicks up to the next."""

import numpy as np
from numba import cuda

PAUSE = np.int64(3600)


@cuda.jit
def number_sessions(user, seconds, session):
    i = cuda.grid(1)
    if i >= user.size:
        return
    starts = i == 0 or user[i] != user[i - 1] or seconds[i] - seconds[i - 1] > PAUSE
    if starts:
        session[i] = i
        j = i + 1
        while j < user.size and user[j] == user[i] and seconds[j] - seconds[j - 1] <= PAUSE:
            session[j] = i
            j += 1


rng = np.random.default_rng(11)
clicks = 500
user = np.sort(rng.integers(0, 40, clicks))
seconds = np.cumsum(rng.integers(1, 5000, clicks))
session = np.full(clicks, -1)
number_sessions.forall(clicks)(user, seconds, session)

start = np.r_[True, (np.diff(user) != 0) | (np.diff(seconds) > PAUSE)]
np.testing.assert_array_equal(session, np.flatnonzero(start)[np.cumsum(start) - 1])
print("sessions", "agree")
