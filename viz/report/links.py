"""Where a report shows the evidence of a finding."""

from __future__ import annotations

from collections.abc import Collection

from ensembles.diagnosis.finding import Finding
from ensembles.model.spans import find_spans, some_spans_text


def evidence_sentences(finding: Finding) -> list[str]:
    """Return the evidence of a finding, without what its title says in the same words.

    Examples
    --------
    >>> from ensembles.diagnosis.finding import Check, Finding, Where
    >>> said = ("9 calls of 8 B", "no other task makes such calls")
    >>> checks = tuple(Check("", True, each) for each in said)
    >>> finding = Finding("small-requests", "note", 1.0, Where(), {}, checks, "", None, "9 calls of 8 B")
    >>> evidence_sentences(finding)
    ['no other task makes such calls']
    """
    title = finding.title.casefold()
    return [check.sentence for check in finding.checks if check.sentence.casefold() not in title]


def evidence_links(finding: Finding, sections: Collection[str]) -> list[tuple[str, str]]:
    """Return the sections of a report in which the calls of a finding can be seen.

    Returns
    -------
    list of (str, str)
        Anchor and words of each link.

    Examples
    --------
    >>> from ensembles.diagnosis.finding import Finding, Where
    >>> where = Where(op="write", calls=("pwrite",), phases=(3,), times_s=(1.0, 2.0))
    >>> finding = Finding("imbalance", "note", 1.0, where, {}, (), "", None, "")
    >>> evidence_links(finding, ["trace", "ensemble-pwrite", "phases", "rate"])[0]
    ('trace', 'the trace diagram from 1.000 to 2.000 s')
    """
    where = finding.where
    when = "" if where.times_s is None else f" from {where.times_s[0]:.3f} to {where.times_s[1]:.3f} s"
    links = [("trace", f"the trace diagram{when}")]
    if where.op in ("read", "write"):
        links.append(("rate", f"the rate of {where.op}s"))
    if where.phases:
        shown = some_spans_text(find_spans(where.phases))
        links.append(("phases", f"phase{'s' * (len(where.phases) > 1)} {shown}"))
    if where.ordinals:
        links.append(("ordinals", "durations by call index"))
    of_calls = [f"ensemble-{name}" for name in (where.calls or ())]
    of_calls += [name for name in sorted(sections) if where.op and name == f"ensemble-{where.op}"]
    links += [
        (name, f"durations of {name.removeprefix('ensemble-')}") for name in of_calls if name in sections
    ]
    if not any(anchor.startswith("ensemble-") for anchor, _ in links):
        links.append(("histogram", "durations of all calls"))
    if where.files:
        links.append(("access_map", "the access map"))
    found = [(anchor, words) for anchor, words in dict.fromkeys(links) if anchor in sections]
    # Of a log of counters, pictures are of sums.
    return found or [(name, name.replace("_", " ")) for name in sorted(sections)[:3]]
