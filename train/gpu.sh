#!/bin/bash
# Train, draft, export and score both dialects, one GPU each (or both on one GPU).   gpu.sh OUT TRAIN_S DRAFT_S END_S
#
# The shipped models were made with 305, 40 and 415 seconds and then improved on a CPU (README.md). What that taught is the default
# here now: V4.1 trains with the selection it is released with (512 rows of 256 blocks), its candidate source also learns
# what the layers after it need, drafts see four to ten times as much code and JSON. Give the drafts 200 seconds or more.
out=$1
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=4 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
n_gpu=$(nvidia-smi -L | wc -l)

one() {
    dialect=$1; export CUDA_VISIBLE_DEVICES=$(( $2 % n_gpu ))
    export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor-$dialect
    mkdir -p /tmp/$dialect /tmp/warm-$dialect
    python3 -m train.all --warm --dialect $dialect --work /tmp/warm-$dialect --out $out > /tmp/$dialect.warm.log 2>&1 &
    python3 -m train.all --dialect $dialect --work /tmp/$dialect --out $out --seconds $3 --draft-seconds $4 --end $5 \
        --own-rows 2048 --ce-share 0.5
}

one v41 0 $2 $3 $4 > $out/v41.log 2>&1 &
a=$!
one v4 1 $2 $3 $4 > $out/v4.log 2>&1 &
wait $a $!
