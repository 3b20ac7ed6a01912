#!/bin/bash
# Train, draft, export and score both dialects, one GPU each (or both on one GPU).   gpu.sh OUT TRAIN_S DRAFT_S END_S
out=$1
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=4 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
n_gpu=$(nvidia-smi -L | wc -l)

one() {
    dialect=$1; export CUDA_VISIBLE_DEVICES=$(( $2 % n_gpu ))
    export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor-$dialect
    mkdir -p /tmp/$dialect /tmp/warm-$dialect
    python3 -m train.all --warm --dialect $dialect --work /tmp/warm-$dialect --out $out > /tmp/$dialect.warm.log 2>&1 &
    python3 -m train.all --dialect $dialect --work /tmp/$dialect --out $out --seconds $3 --draft-seconds $4 --end $5
}

one v41 0 $2 $3 $4 > $out/v41.log 2>&1 &
a=$!
one v4 1 $2 $3 $4 > $out/v4.log 2>&1 &
wait $a $!
