#!/bin/bash
# One run as a SLURM job that continues until it is done:
#
#     sbatch --time=12:00:00 --gpus-per-node=1 launch/slurm/train.sh --config=configs/toy.py --workdir=runs/toy
#
# Two minutes before the time is over, SLURM sends USR2. The run saves a checkpoint and exits with 140 (128 + USR2), or with 143 after
# SIGTERM. The job is then queued again and goes on from there. PYTHON names another interpreter than .venv/bin/python.
#SBATCH --job-name=one_layer
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --signal=USR2@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

srun "${PYTHON:-.venv/bin/python}" main.py "$@"
code=$?
if [ "$code" -eq 140 ] || [ "$code" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
