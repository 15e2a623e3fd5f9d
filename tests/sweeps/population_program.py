"""Stands in for the command `population` in the tests of sweeps: notes which runs it is given together, and takes no time.

A keep of 0.9 fails; the others get a result. With train.updates=1000 it waits for signals, and notes each of them.
"""

import json
import signal
import sys
import time
from pathlib import Path

workdir, names = Path(sys.argv[2].removeprefix("--workdir=")), sys.argv[3:]
runs = json.loads((workdir / "sweep.json").read_text())["runs"]
with (workdir / "together").open("a") as file:
    file.write(json.dumps(names) + "\n")
if runs[names[0]]["config"]["train"]["updates"] == 1000:

    def stop(number: int, frame: object) -> None:
        with (workdir / "signals").open("a") as file:
            file.write(f"{number}\n")
        time.sleep(0.5)
        sys.exit("interrupted")

    signal.signal(signal.SIGTERM, stop)
    (workdir / "ready").touch()
    time.sleep(600)
failed = False
for name in names:
    (workdir / name).mkdir()
    if runs[name]["config"]["model"]["keep"] == 0.9:
        failed = True
        (workdir / f"{name}.log").write_text("the run takes 1 s\nerror: training has diverged\n")
    else:
        (workdir / name / "result.json").write_text(json.dumps({"test": {"test": {"bleu_tokenized": 1.0}}}))
print("the last line of all")
sys.exit(int(failed))
