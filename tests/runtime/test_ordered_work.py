from __future__ import annotations

import random
import threading
import time

import pytest

from darkroom.runtime.ordered_work import Crew, OrderedWork, look_ahead


@pytest.fixture
def crew():
    made = Crew(4, "test")
    yield made
    made.close()


def _sleep_a_little(_=None):
    time.sleep(random.random() / 500)


@pytest.mark.parametrize(("count", "begun"), [(0, [1, 2, 3, 4]), (2, [3, 4, 4, 4]), (9, [4] * 4)])
def test_work_is_begun_ahead_of_the_item_in_use(count, begun):
    taken = []
    items = (taken.append(item) or item for item in range(4))
    assert [(item, len(taken)) for item in look_ahead(items, count)] == [*enumerate(begun)]


def test_results_are_taken_in_order_one_at_a_time(crew):
    taken, at_it = [], threading.Lock()

    def work(number):
        _sleep_a_little()
        return number * 10

    def take(result):
        assert at_it.acquire(blocking=False)
        _sleep_a_little()
        taken.append(result)
        at_it.release()

    crew.run(OrderedWork(((n, 1) for n in range(200)), work, take, 8, 100))
    assert taken == list(range(0, 2000, 10))


def test_work_is_done_in_several_threads(crew):
    barrier = threading.Barrier(4)
    items = ((n, 1) for n in range(4))
    # Each waits for the three others.
    crew.run(OrderedWork(items, lambda _: barrier.wait(300), lambda _: None, 8, 100))


@pytest.mark.parametrize(
    ("max_items", "max_bytes", "most_items"), [(3, 1000, 3), (100, 20, 2), (100, 5, 1)]
)
def test_items_begun_and_not_taken_are_bounded(crew, max_items, max_bytes, most_items):
    begun, most, changing = [], [], threading.Lock()

    def work(number):
        with changing:
            begun.append(number)
            most.append(len(begun))
        _sleep_a_little()
        return number

    def take(number):
        with changing:
            begun.remove(number)

    crew.run(OrderedWork(((n, 10) for n in range(60)), work, take, max_items, max_bytes))
    assert begun == []
    assert max(most) <= most_items


def test_works_run_at_once_and_their_results_are_not_mixed(crew):
    taken = {name: [] for name in "abc"}
    both = threading.Barrier(3)

    def run(name):
        items = ((n, 1) for n in range(50))

        def work(number):
            if number == 0:
                both.wait(300)  # ends only if the threads spread over all three
            return name, number

        # Room for all items: otherwise every thread may wait for the first item of one work.
        crew.run(OrderedWork(items, work, taken[name].append, 50, 100))

    threads = [threading.Thread(target=run, args=(name,)) for name in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert taken == {name: [(name, n) for n in range(50)] for name in taken}


@pytest.mark.parametrize("where", ["items", "work", "take"])
def test_an_error_is_raised_and_no_more_items_begin(crew, where):
    begun = []

    def fail(number):
        if number == 5:
            raise ValueError(f"no {where}")
        return number

    def items():
        for number in range(1000):
            begun.append(number)
            yield (fail(number) if where == "items" else number), 1

    work = fail if where == "work" else (lambda number: number)
    take = fail if where == "take" else (lambda _: None)
    with pytest.raises(ValueError, match=f"no {where}"):
        crew.run(OrderedWork(items(), work, take, 8, 100))
    crew.close()
    assert len(begun) < 100


def test_closing_ends_running_work():
    crew = Crew(2, "test")
    started, ended = threading.Event(), []

    def work(number):
        started.set()
        time.sleep(0.01)
        return number

    def run():
        endless = ((1, 1) for _ in iter(int, 1))
        try:
            crew.run(OrderedWork(endless, work, lambda _: None, 8, 100))
        except InterruptedError as error:
            ended.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(300)
    crew.close()
    thread.join(300)
    assert ended == ["the threads were stopped"]
    with pytest.raises(InterruptedError):
        crew.run(OrderedWork(iter([(1, 1)]), work, lambda _: None, 8, 100))
