"""A prediction is the gain of the finding that the remedy mends, or computed from the times of calls."""

import dataclasses
from datetime import UTC, datetime

from ensembles.answers.diagnose import gain_of
from ensembles.answers.history import answer_predictions
from ensembles.answers.predict import predict
from ensembles.diagnosis.finding import Diagnosis, Finding, Gain, Where
from ensembles.diagnosis.principles import CAUSES, TRIALS
from ensembles.faces.words import sentence
from ensembles.history.store import StoredRun
from ensembles.workloads.recorded.remedies import remedy_named


def diagnosis(cause="small-requests", op="write"):
    finding = Finding(cause, 0.9, Where(op=op), {}, (), "", (0.5, 2.0), "", likely_s=1.5)
    finding = dataclasses.replace(finding, trial="".join(finding.proposed_trials))
    return Diagnosis("run", (finding,), (cause,), ())


def test_the_prediction_is_the_gain_that_diagnose_says():
    found = predict(diagnosis(), "join=4MiB", "posix.write", bool)
    (finding,) = diagnosis().findings
    assert found.gain == finding.gain == (0.5, 2.0, 1.5)
    assert found.to_json()["finding"] == "small-requests"
    said = sentence(gain_of(finding, is_whole=False))
    assert said.lower() in " ".join(str(found).split())
    assert "1.50 s by the best estimate" in said


def test_a_calibration_comes_before_the_account():
    assert predict(diagnosis(), "join=4MiB", Gain(0.1, 0.3), bool, "calibration").gain == (0.1, 0.3, None)


def test_what_no_record_shows_is_refused_with_the_run_that_would_tell():
    found = predict(diagnosis(), "split=4", "posix.write", bool)
    assert found.gain is None
    assert "calibrate-fs" in found.to_json()["refused"]


def test_a_remedy_that_leaves_the_calls_of_its_finding_as_they_are_is_refused():
    found = predict(
        diagnosis("imbalance"), "even", Gain(-0.2, -0.1), lambda finding: finding.id != "imbalance"
    )
    assert found.gain is None
    assert "imbalance" in found.to_json()["refused"]


def test_a_loss_and_an_undecided_gain_have_no_negative_times():
    texts = [
        str(predict(diagnosis(), "split=4", Gain(*ends), bool))
        for ends in ((-0.3, -0.1, -0.2), (-0.3, 0.1, -0.1), (0, 0.1))
    ]
    for text, said in zip(texts, ("100 ms to 300 ms longer", "300 ms longer to 100", "up to"), strict=True):
        assert said in text
        assert "-" not in text


def test_each_trial_of_the_table_of_causes_is_a_remedy():
    tables = [*TRIALS.values(), *(cause.trials for cause in CAUSES.values())]
    trials = {trial for table in tables for trial in table.values()}
    assert len(trials) > 6
    assert all(remedy_named(trial).name == trial for trial in trials)


def test_the_operation_of_the_calls_chooses_the_trial():
    assert diagnosis("fewer-calls", "sync").findings[0].trial == "sync=end"
    assert diagnosis("fewer-calls", "open").findings[0].trial == "keep-open"
    assert diagnosis("imbalance", "read").findings[0].trial == "even"
    assert diagnosis("straggler-task").findings[0].trial == ""


def test_a_history_counts_predictions_that_held_what_was_measured():
    labels = {"run": "r", "with": "join=1MiB", "file-system": "ext4", "predicted_s": "1.0 2.0"}
    run = StoredRun(1, "ensio try", datetime(2026, 1, 1, tzinfo=UTC), "r", 1, 1.0, 1.0, {})
    runs = [
        dataclasses.replace(run, labels=labels | {"measured_s": "1.5"}),
        dataclasses.replace(run, labels=labels | {"measured_s": "2.5"}),
        run,
    ]
    found = answer_predictions(runs)
    assert [each["inside"] for each in found.to_json()["predictions"]] == [True, False]
    assert "ext4: 1 of 2 predictions held what was measured." in str(found)


def test_a_remedy_of_some_functions_of_a_finding_gains_what_their_times_say():
    found = predict(diagnosis(), "join=4MiB", Gain(0.1, 0.3), lambda _: 0.5)
    assert (found.gain, found.finding) == ((0.1, 0.3, None), "")
    assert predict(diagnosis(), "join=4MiB", Gain(0.1, 0.3), lambda _: 0.0).gain is None
