"""What a run remembers of its training."""

from one_layer.training.progress import Progress


def test_a_run_remembers_how_many_shared_the_device():
    progress = Progress()
    for step, members, shared in [
        (0, 4, 4),
        (0, 2, 2),  # nothing was trained in between
        (10, 2, 2),
        (10, 1, "2 from update 0, 1 from update 10"),
        (10, 2, 2),
        (20, 1, "2 from update 0, 1 from update 20"),
        (30, 2, "2 from update 0, 1 from update 20, 2 from update 30"),
    ]:
        progress.step = step
        progress.trains(members, ["cpu", 1], "abc")
        assert progress.shared == shared


def test_a_run_remembers_what_trained_it():
    """Not what wrote its results, which may be another machine, or a later version of the code."""
    progress = Progress()
    for step, device, commit, known in [
        (0, ["cpu", 1], "abc", "cpu"),
        (10, ["H100", 1], "abc", "1 x cpu from update 0, 1 x H100 from update 10"),
        (10, ["cpu", 1], "def", "cpu"),  # nothing was trained in between
        (20, ["cpu", 2], "def", "1 x cpu from update 0, 2 x cpu from update 20"),
    ]:
        progress.step = step
        progress.trains(1, device, commit)
        assert (progress.device, progress.commit) == (known, commit)
