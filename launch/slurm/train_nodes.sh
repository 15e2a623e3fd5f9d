#!/bin/bash
# One run on several nodes as a SLURM job that continues until it is done:
#
#     sbatch --time=12:00:00 --nodes=2 --gpus-per-node=8 launch/slurm/train_nodes.sh --config=configs/wmt14.py:one_layer_base --config.data.directory=DATA \
#         --workdir=DIR
#
# Each node runs one process with all of its GPUs. DATA and DIR are on a file system that the nodes share. The job is queued again as in train.sh.
#SBATCH --job-name=one_layer
#SBATCH --ntasks-per-node=1
#SBATCH --signal=USR2@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MEET="$first:$((20000 + SLURM_JOB_ID % 20000))"
srun --kill-on-bad-exit=1 bash -c 'exec launch/train_multihost.sh "$MEET" "$SLURM_NTASKS" "$SLURM_PROCID" "$@"' train "$@"
code=$?
if [ "$code" -eq 140 ] || [ "$code" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
