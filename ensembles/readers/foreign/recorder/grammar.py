"""Expand the grammars of Recorder: the sequence of a rank's call signatures."""

from __future__ import annotations

import numpy as np

START = -1
_MOST_WORK = 64

Rules = dict[int, np.ndarray]
"""Rules by number (negative); each an array of shape (symbols, 2): symbol and number of repetitions."""


class GrammarError(ValueError):
    """The bytes are not a grammar, or it is impossible."""


def parse_grammar(data: bytes) -> Rules:
    """Parse a grammar: 32-bit integers.

    It has the number of rules, and for each rule its number, its number of symbols, and pairs of symbol and
    exponent.
    """
    if len(data) < 4 or len(data) % 4:
        raise GrammarError("its grammar is cut off")
    numbers = np.frombuffer(data, "<i4").astype(np.int64)
    rules: Rules = {}
    at = 1
    for _ in range(int(numbers[0])):
        if at + 2 > len(numbers):
            raise GrammarError("its grammar is cut off")
        rule, symbols = numbers[at : at + 2].tolist()
        body = numbers[at + 2 : at + 2 + 2 * symbols]
        if symbols < 0 or len(body) != 2 * symbols:
            raise GrammarError("its grammar is cut off")
        rules[rule] = body.reshape(-1, 2)
        at += 2 + 2 * symbols
    return rules


def expand(rules: Rules, calls: int, signatures: int) -> np.ndarray:
    """Expand a grammar.

    Parameters
    ----------
    rules : dict of int to ndarray
        Symbols from 0 are signatures; negative ones are rules.
    calls : int
        Number of calls that the rank has time stamps for.
    signatures : int
        Number of signatures.

    Returns
    -------
    ndarray of int64, shape (calls,)

    Raises
    ------
    GrammarError
        The grammar is infinite, or does not make `calls` calls.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.readers.foreign.recorder.grammar import expand
    >>> expand({-1: np.array([[0, 1], [-2, 2]]), -2: np.array([[1, 1], [2, 2]])}, 7, 3)
    array([0, 1, 2, 2, 1, 2, 2])
    """
    order = _order(rules)
    lengths: dict[int, int] = {}
    for rule in order:
        body = rules[rule]
        if len(body) and (body[:, 1].min() < 1 or body[:, 0].max() >= signatures):
            raise GrammarError("its grammar has a symbol that is not defined")
        lengths[rule] = sum(
            exponent * (1 if symbol >= 0 else lengths[symbol]) for symbol, exponent in body.tolist()
        )
    if lengths[START] != calls:
        raise GrammarError(f"its grammar makes {lengths[START]:,} calls, and there are times of {calls:,}")
    if sum(lengths.values()) > _MOST_WORK * calls + (1 << 20):
        raise GrammarError("its grammar is impossibly deep")
    expanded: dict[int, np.ndarray] = {}
    for rule in order:
        parts = [
            np.full(exponent, symbol) if symbol >= 0 else np.tile(expanded[symbol], exponent)
            for symbol, exponent in rules[rule].tolist()
        ]
        expanded[rule] = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return expanded[START]


def _order(rules: Rules) -> list[int]:
    """Return the rules that the first one needs, each after those that it contains."""
    done: dict[int, bool] = {}
    found: list[int] = []
    stack = [START]
    while stack:
        rule = stack[-1]
        if rule not in rules:
            raise GrammarError(f"its grammar lacks rule {rule}")
        if rule not in done:
            done[rule] = False
            inner = np.unique(rules[rule][:, 0])
            inner = inner[inner < 0]
            if any(done.get(symbol) is False for symbol in inner.tolist()):
                raise GrammarError("its grammar is infinite")
            stack += [symbol for symbol in inner.tolist() if symbol not in done]
        else:
            stack.pop()
            if not done[rule]:
                done[rule] = True
                found.append(rule)
    return found
