"""Stands in for main.py in the tests of sweeps: reads the same command line, and takes no time.

It writes a result with the score 100 · keep. A keep of 0.9 fails, and one of 0.8 fails after its result is written.
With train.updates=0, it waits for a signal, and saves the number of its starts, as main.py saves a checkpoint.
"""

import json
import runpy
import signal
import sys
import time
from pathlib import Path

if sys.argv[1] == "population":
    runpy.run_path(str(Path(__file__).with_name("population_program.py")))
given = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
folder = Path(given["workdir"])
folder.mkdir(parents=True, exist_ok=True)
keep = float(given.get("config.model.keep", 0.5))
starts = folder / "starts"
starts.write_text(str(int(starts.read_text()) + 1 if starts.exists() else 1))
sweep = folder.parent / "sweep.json"
planned = json.loads(sweep.read_text())["runs"].get(folder.name, {}) if sweep.exists() else {}
(folder / "config.json").write_text(json.dumps(planned.get("config", {})))
(folder / "words").write_text(" ".join(sys.argv[1:]))
(folder / "metrics.jsonl").write_text(json.dumps({"step": 5, "seconds": 10.0, "valid/nll": 2.0}) + "\n")
needed = given.get("config.model.embedding_path")
if needed and not (Path(needed) / "result.json").exists():
    sys.exit(f"error: {needed} has no result")
if keep == 0.9:
    sys.exit("error: training has diverged")
if given.get("config.train.updates") == "0" and starts.read_text() == "1":

    def stop(number: int, frame: object) -> None:
        (folder / "saved").write_text(str(number))
        sys.exit(128 + number)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGUSR2, stop)
    (folder / "ready").touch()
    time.sleep(600)
(folder / "result.json").write_text(json.dumps({"seed": 1, "test": {"test": {"bleu_tokenized": 100 * keep}}}))
if keep == 0.8:
    sys.exit("error: it could not clean up")
