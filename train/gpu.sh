#!/bin/bash
# One command on the GPU machine: train, draft, score and export both dialects, one GPU each (or both on one GPU).
#   gpu.sh PHASE SECONDS OUT      PHASE: smoke | train | finish
phase=$1; seconds=$2; out=$3
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=4
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
n_gpu=$(nvidia-smi -L | wc -l)

one() {
    dialect=$1; export CUDA_VISIBLE_DEVICES=$(( $2 % n_gpu ))
    export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor-$dialect
    work=/tmp/$dialect; mkdir -p $work
    case $phase in
    smoke)
        python3 -m train.train --dialect $dialect --work $work --seconds 1000 --stop-after $seconds --log-every 10 \
            --long-from 0 --dense-until 0.04
        timeout 80 python3 -m train.draft --dialect $dialect --work $work --seconds 20 --own-rows 256 --measure 16
        timeout 60 python3 -m train.score --dialect $dialect --final $work/final.pt --out $out/scores-$dialect.json \
            --agent 8 --retrieval 2 --talk 4
        ;;
    train)
        resume=; [ -f $work/checkpoint.pt ] && resume="--resume --keep-feeds"
        python3 -m train.train --dialect $dialect --work $work --seconds $TOTAL --stop-after $seconds $resume
        ;;
    finish)
        python3 -m train.draft --dialect $dialect --work $work --seconds $seconds
        python3 -m train.export --dialect $dialect --final $work/final.pt --out /tmp/hf-$dialect
        (cd /tmp && tar cf - hf-$dialect) | split -b 15M - $out/hf-$dialect.tar.
        python3 -m train.score --dialect $dialect --final $work/final.pt --out $out/scores-$dialect.json
        ;;
    esac
}

one v41 0 > /tmp/v41.$phase.log 2>&1 &
a=$!
one v4 1 > /tmp/v4.$phase.log 2>&1 &
wait $a $!
