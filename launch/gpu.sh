#!/bin/bash
# What to measure on an accelerator, in the order of its worth. The same command goes on where the time was over:
#
#     launch/gpu.sh DATA [MINUTES]
#
# DATA holds multi30k, multi30k_bpe, iwslt14, europarl_iten, and everyday of prepare_everyday. Runs go to runs/gpu, all else to results/gpu,
# and what is there is not done again. A run of the same text on a CPU fills runs/gpu/store beforehand. PYTHON names another interpreter.
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
export XLA_FLAGS=${XLA_FLAGS---xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0}  # no search for the fastest kernels: minutes a shape

in_time() {  # a command, until the time is over: then it is asked to stop, and training saves a checkpoint
    local left=$((END - SECONDS)); [ "$left" -gt 0 ] || return 124
    timeout --signal=TERM --kill-after=60 "$left" "$@"
}
once() {  # FILE COMMAND...: skipped when the file is there, which it is once the command has succeeded
    local file=$1; shift
    [ -e "$file" ] || { in_time "$@" > "$file.part" 2>&1 && mv "$file.part" "$file"; }
}
sweep() {  # NAME CONFIG SWEEP FOLDER KEYS...: FOLDER is one of DATA, or - for the built-in language
    local text=(--config.data.directory="$DATA/$4" --config.data.store=runs/gpu/store)
    [ "$4" = - ] && text=()
    in_time "$PYTHON" main.py sweep --config="configs/$2.py" --sweep="$3" --workdir="runs/gpu/$1" "${text[@]}" "${@:5}"
}
averaged() {  # NAME SPLIT: the scores of the average of the last ten checkpoints, of all runs of a sweep that have finished
    for result in runs/gpu/"$1"/*/result.json; do
        [ -e "$result" ] && once "results/gpu/$1-$(basename "$(dirname "$result")").txt" \
            "$PYTHON" main.py --mode=evaluate --workdir="$(dirname "$result")" --checkpoint=average:10 --split="$2"
    done
}

for size in small wider; do  # an update here and in PyTorch, a whole training, and beam search
    for name in "accelerator --peer=torch" run decode; do
        once "results/gpu/${name%% *}-$size.txt" "$PYTHON" launch/benchmark.py $name --size=$size --out="results/gpu/${name%% *}-$size.json"
    done
done
sweep europarl europarl table1 europarl_iten
averaged europarl test.tok
sweep everyday everyday controls everyday
sweep everyday_seeds everyday seeds everyday
sweep everyday_large everyday both_large everyday
sweep multi30k_best multi30k_best small multi30k
sweep toy toy figure2 - --vmap
for precision in highest default; do  # what is equal where products are not those of a CPU
    once "results/gpu/tests-$precision.txt" env JAX_PLATFORMS= JAX_DEFAULT_MATMUL_PRECISION=$precision \
        bash -c '"$@" || [ "$?" = 1 ]' tests "$PYTHON" -m pytest -q -n0 \
        -m "not slow" tests/models/test_golden.py tests/models/test_translation.py tests/tasks/translation tests/training
done
sweep multi30k_table1 multi30k table1 multi30k_bpe
sweep iwslt47k_table1 iwslt14 table1 iwslt14 --config.model.dtype=bfloat16 \
    --config.data.train=train_subset.bpe10k --config.data.valid=valid.bpe10k --config.data.tests="('test.bpe10k',)"
sweep reservoirs reservoirs kinds multi30k_bpe --config.train.updates=8000
