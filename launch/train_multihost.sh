#!/bin/bash
# One process of a run that several hosts train together. Start it on every host, with the same address and a number of its own:
#
#     launch/train_multihost.sh HOST:PORT PROCESSES PROCESS --config=configs/wmt14.py:one_layer_base --config.data.directory=DATA \
#         --workdir=/shared/runs/base
#
# HOST:PORT is an address of the first host, which has the number 0. A process uses all accelerators of its host. All hosts need the same
# code, text and versions, and --workdir on a file system that they share. PYTHON names another interpreter than .venv/bin/python.
set -euo pipefail
if [ "$#" -lt 3 ]; then
    echo "error: give HOST:PORT, the number of processes and the number of this one, then the arguments of main.py" >&2
    exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec "${PYTHON:-.venv/bin/python}" main.py "--distributed=$1" "--processes=$2" "--process=$3" "${@:4}"
