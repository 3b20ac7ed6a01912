#!/bin/bash
# Train the draft stages of the shipped models further, side by side on one GPU.   gpu_drafts.sh OUT SECONDS [DIALECT [OPTION ...]]
#
# SECONDS: until fitting ends; loading PyTorch, measuring and writing take about 30 more. OUT gets three files of each: stages,
# figures, log. OPTIONs are train.redraft's.
out=$1 seconds=$2 dialects=${3:-v41 v4}
shift $(( $# < 3 ? $# : 3 ))
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=4 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
for dialect in $dialects; do
    python3 -m train.redraft train --dialect $dialect --gguf models/hadal-tiny-$dialect.gguf --out $out --seconds $seconds \
        --device cuda "$@" > $out/redraft-$dialect.log 2>&1 &
done
wait
