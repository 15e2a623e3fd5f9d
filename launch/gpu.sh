#!/bin/bash
# What to measure on an accelerator, in the order of its worth; results/README.md says what is there. The same command goes on where the
# time was over:
#
#     launch/gpu.sh DATA [MINUTES]
#
# DATA holds the folders multi30k, multi30k_bpe, iwslt14 and europarl_iten, and everyday of prepare_everyday. Runs go to runs/gpu,
# benchmarks to results/gpu. A sweep skips the runs that have finished, and a benchmark, a test or a score is skipped when its file is there.
# runs/gpu/store has the texts as ids: made before on a CPU, by any run with the same keys of data, it costs no minute of the accelerator.
# PYTHON names another interpreter than .venv/bin/python.
set -uo pipefail
if [ "$#" -lt 1 ] || [ ! -d "$1" ]; then
    echo "error: give the folder with the corpora, and perhaps the minutes after which to stop" >&2
    exit 2
fi
DATA=$(realpath "$1")
END=$((SECONDS + 60 * ${2:-9}))
PYTHON=${PYTHON:-.venv/bin/python}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p runs/gpu results/gpu
# XLA's search for the fastest kernels takes minutes of many cores for each shape of a batch.
export XLA_FLAGS=${XLA_FLAGS---xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0}

in_time() {  # a command, until the time is over: then it is asked to stop, and training saves a checkpoint
    local left=$((END - SECONDS))
    [ "$left" -gt 0 ] && timeout --signal=TERM --kill-after=60 "$left" "$@"
}
once() {  # FILE COMMAND...: skipped when the file is there
    local file=$1
    shift
    [ -e "$file" ] || { in_time "$@" > "$file.part" 2>&1; [ "$?" -le 1 ] && mv "$file.part" "$file"; }
}
sweep() {  # NAME CONFIG SWEEP KEYS...
    in_time "$PYTHON" main.py sweep --config="configs/$2.py" --sweep="$3" --workdir="runs/gpu/$1" --config.data.store=runs/gpu/store "${@:4}"
}
averaged() {  # NAME SPLIT: the scores of the average of the last ten checkpoints, of all runs of a sweep that have finished
    local result
    for result in runs/gpu/"$1"/*/result.json; do
        [ -e "$result" ] && once "results/gpu/$1-$(basename "$(dirname "$result")").txt" \
            "$PYTHON" main.py --mode=evaluate --workdir="$(dirname "$result")" --checkpoint=average:10 --split="$2"
    done
}

for size in small wider base; do  # an update here and in PyTorch
    once "results/gpu/update-$size.txt" "$PYTHON" launch/benchmark.py accelerator --size=$size --peer=torch --out=results/gpu/update-$size.json
done
# The paper's table, at the paper's size
sweep europarl europarl table1 --config.data.directory="$DATA/europarl_iten"
averaged europarl test.tok
# The translator of everyday sentences with its controls, and the small files of captions with theirs
sweep everyday everyday controls --config.data.directory="$DATA/everyday"
sweep everyday_seeds everyday seeds --config.data.directory="$DATA/everyday"
sweep everyday_large everyday both_large --config.data.directory="$DATA/everyday"
sweep multi30k_best multi30k_best small --config.data.directory="$DATA/multi30k"
sweep toy toy figure2 --vmap
for size in small base wide; do
    once "results/gpu/decode-$size.json" "$PYTHON" launch/benchmark.py decode --size=$size
done
for precision in highest default; do  # what is equal where products are not those of a CPU
    once "results/gpu/tests-$precision.txt" env JAX_PLATFORMS= JAX_DEFAULT_MATMUL_PRECISION=$precision "$PYTHON" -m pytest -q -n0 \
        -m "not slow" tests/models/test_golden.py tests/models/test_translation.py tests/tasks/translation tests/training
done
for seed in 1 2 3; do  # the published recipe of 41.02 BLEU, and the average of its last ten checkpoints
    run=runs/gpu/dense_tiny-$seed
    [ -e $run/result.json ] || in_time "$PYTHON" main.py --config=configs/multi30k.py:dense_tiny --workdir=$run --config.seed=$seed \
        --config.data.directory="$DATA/multi30k_bpe"
    once results/gpu/dense_tiny-$seed.txt "$PYTHON" main.py --mode=evaluate --workdir=$run --checkpoint=average:10 --split=test2016.bpe10k
done
sweep multi30k_table1 multi30k table1 --config.data.directory="$DATA/multi30k_bpe"
sweep multi30k_keep multi30k figure2_cpu --vmap --config.data.directory="$DATA/multi30k_bpe"
sweep iwslt47k_table1 iwslt14 table1 --config.data.directory="$DATA/iwslt14" --config.model.dtype=bfloat16 \
    --config.data.train=train_subset.bpe10k --config.data.valid=valid.bpe10k --config.data.tests="('test.bpe10k',)"
sweep reservoirs reservoirs kinds --config.data.directory="$DATA/multi30k_bpe" --config.train.updates=8000
