"""The recorder under ThreadSanitizer, and under AddressSanitizer with UBSan: nothing to report.

``./dev test-long`` builds the recorder so, in separate build folders. Programs that it is linked into are
built with the sanitizer as well.
"""

import pytest
from places import BUILD

import ensembles

pytestmark = pytest.mark.long

SANITIZERS = {"thread": "thread", "address": "address,undefined"}

# Name of the program, its arguments (OUT: a file, FOLDER: a folder), and the status with which it ends.
LIVES = [
    ("every_call", ("FOLDER",), 7),
    ("metadata_calls", ("FOLDER",), 9),
    ("stdio_calls", ("FOLDER",), 7),
    ("stdio_threads", ("OUT", 4, 2000), 0),
    ("threads", ("FOLDER", 4, 2000, 3), 0),
    ("processes", ("OUT",), 5),
    ("reused_descriptors", ("FOLDER",), 0),
    ("acknowledge", ("OUT", 100_000), 0),
    *(
        ("odd_lives", (name, "OUT"), 6)
        for name in (
            "positions", "vector", "fork_storm", "fork_handler", "closed_output", "jumps", "homeless_child",
        )
    ),
    *(
        ("seen_paths", (name, "FOLDER"), 20)
        for name in ("folders", "walks", "threads", "replaced", "same_memory", "child", "handlers", "storms")
    ),
    *(("limits", (name, "OUT"), 4) for name in ("descriptors", "file_size")),
    *(
        ("known_failures", (name, "OUT"), 5)
        for name in ("statuses", "parent_and_child", "ends_of_children", "two_threads")
    ),
]  # fmt: skip


# What ThreadSanitizer itself does not stand, recorded or not: it changes errno in calls on a stream without a
# file; and a child that is made past every fork handler waits for locks of its that another thread held.
NOT_UNDER_THREAD = ("stdio_calls", "fork_storm")

RUNS = [
    pytest.param(sanitizer, *life, id=f"{sanitizer}-{life[0]}-{life[1][0]}")
    for sanitizer in SANITIZERS
    for life in LIVES
    if sanitizer != "thread" or not {life[0], life[1][0]} & set(NOT_UNDER_THREAD)
]


@pytest.mark.parametrize(("sanitizer", "name", "arguments", "status"), RUNS)
def test_no_report(relinked, tmp_path, sanitizer, name, arguments, status):
    relinked.driver = BUILD / sanitizer / "bin" / "ensio-cc"
    if not relinked.driver.exists():
        pytest.fail(f"{relinked.driver} is not built; run ./dev test-long")
    # The programs pass null where none is allowed on purpose.
    checks = (f"-fsanitize={SANITIZERS[sanitizer]}", "-fno-sanitize=nonnull-attribute")
    options = (*checks, "-fno-sanitize-recover=all", "-g", "-O1")
    program = relinked.build(name, *options)
    out = tmp_path / "out"
    out.write_bytes(b"0123456789" * 20)
    words = [{"OUT": out, "FOLDER": tmp_path}.get(word, word) for word in arguments]
    # Children are forked while threads run, and go on: ThreadSanitizer would end them. Of programs that are
    # ended in the middle of things, leaks are expected.
    environment = {"TSAN_OPTIONS": "die_after_fork=0", "ASAN_OPTIONS": "detect_leaks=0"}
    log = tmp_path / "log"
    command = ("sh", "-c", 'log=$1; shift; exec "$@" 3>"$log"', "sh", log, program, *words)
    done = relinked.execute(*command, environment=environment, timeout=600)
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert "Sanitizer" not in said, said
    assert "runtime error" not in said, said
    assert done.returncode == status, said
    assert len(ensembles.open(relinked.run).events) > 0
