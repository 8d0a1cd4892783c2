from __future__ import annotations

import json

import pytest

from darkroom.profiling.verdict import (
    StageCosts,
    format_input_verdict,
    judge_input,
    write_input_verdict,
)


def _costs(**microseconds):
    return StageCosts({name: value / 1e6 for name, value in microseconds.items()})


@pytest.mark.parametrize(("share", "text"), [(0.004, "0.4%"), (0.03, "3.0%")])
def test_a_training_that_hardly_waits_is_not_input_bound(share, text):
    verdict = judge_input(share, 1234.5, _costs(decode=500, resize=100))
    assert verdict.sentence == (
        f"Not input-bound: {text} of the time waiting for input, 1,234 images/s."
    )
    assert verdict.speedup == 1


def test_a_single_batch_tells_nothing():
    assert judge_input(0.0, 0.0).sentence == (
        "Too few batches to tell whether input holds this training back."
    )


def test_without_stages_it_says_how_to_get_them():
    sentence = judge_input(0.41, 900).sentence
    assert sentence == ("Input-bound 41% at 900 images/s; use --profile-input to see which stage.")


@pytest.mark.parametrize(
    ("costs", "sentence", "speedup"),
    [
        (
            _costs(read=50, decode=1000, resize=200),
            "Input-bound 60% at 900 images/s: decoding; store smaller images "
            "(convert --resize-short-side), or give it more cores.",
            1.0,
        ),
        (
            _costs(read=50, decode=300, resize=550),
            "Input-bound 60% at 900 images/s: resizing; give it more cores "
            "(tf.data service: darkroom dataservice).",
            1.0,
        ),
        (
            _costs(read=900, decode=300),
            "Input-bound 60% at 900 images/s: reading; keep records in memory "
            "(--record-cache memory), or on a faster disk for about 2.5x.",
            2.5,
        ),
        (
            _costs(decode=500, augment=1500),
            "Input-bound 60% at 900 images/s: augmenting; augment less "
            "(crop and flip cost the least) for about 2.5x.",
            2.5,
        ),
    ],
)
def test_the_slowest_stage_decides_the_advice(costs, sentence, speedup):
    verdict = judge_input(0.6, 900, costs)
    assert verdict.sentence == sentence
    assert verdict.speedup == pytest.approx(speedup, rel=0.03)


def test_the_verdict_is_written_for_machines_and_for_people(tmp_path):
    verdict = judge_input(0.5, 100.04, _costs(read=10, decode=990.26))
    write_input_verdict(str(tmp_path), verdict)
    found = json.loads((tmp_path / "input.json").read_text())
    assert found == {
        "verdict": verdict.sentence,
        "waiting_share": 0.5,
        "images_per_second": 100.0,
        "microseconds_an_image": {"read": 10.0, "decode": 990.3},
        "speedup": 1.0,
    }
    text = (tmp_path / "input.md").read_text()
    assert text == format_input_verdict(verdict)
    assert verdict.sentence in text
    assert "| decode | 990 |" in text
