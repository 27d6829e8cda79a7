"""Summaries whose worker is killed in the middle of its part, once or always."""

import os
import signal

from ensembles.passes.summary import Summary

MARK = "killed-at-"


class Killed(Summary):
    """Counts events; every process that fills one is killed in mid-part, up to `times` of them in all.

    Parameters
    ----------
    folder : str
        Where the killed leave a mark.
    spared : int
        The process that asks, which makes an empty one too.
    times : int
    """

    def __init__(self, folder, spared, times, run):
        self.folder, self.spared, self.times = folder, spared, times
        self.events = 0

    def add(self, chunk):
        self.events += len(chunk)
        if os.getpid() != self.spared:
            for number in range(self.times):
                try:
                    open(os.path.join(self.folder, f"{MARK}{number}"), "x").close()
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)

    def merge(self, other):
        self.events += other.events
