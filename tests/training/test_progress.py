"""What a run remembers of its training."""

from __future__ import annotations

from one_layer.training.progress import Progress


def test_a_run_remembers_how_many_shared_the_device():
    progress = Progress()
    assert progress.shared is None  # nothing was trained, or by an earlier version
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
        progress.share(members)
        assert progress.shared == shared
