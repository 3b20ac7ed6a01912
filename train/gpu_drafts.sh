#!/bin/bash
# Train the draft stages of both shipped models further, side by side on one GPU.   gpu_drafts.sh OUT SECONDS
#
# SECONDS: until fitting ends; loading PyTorch, measuring and writing take about 30 more. OUT gets six files: stages, figures, logs.
out=$1
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=4 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
for dialect in v41 v4; do
    python3 -m train.redraft train --dialect $dialect --gguf models/hadal-tiny-$dialect.gguf --out $out --seconds $2 \
        --device cuda > $out/redraft-$dialect.log 2>&1 &
done
wait
