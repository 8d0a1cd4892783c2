"""Counts of objects are added up."""

from dataclasses import astuple

from darkroom.dataset.objects import ObjectCounts, add_objects


def test_the_most_objects_of_a_record_are_not_a_sum():
    parts = [
        ObjectCounts(3, 2, alone=1, most=3),
        ObjectCounts(5, merged=1, most=5),
        ObjectCounts(rejected=7),
    ]
    expected = ObjectCounts(8, 9, merged=1, alone=1, most=5)
    assert ObjectCounts(*add_objects(map(astuple, parts))) == expected
    assert ObjectCounts(*add_objects([])) == ObjectCounts()
