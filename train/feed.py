"""Training rows: worker processes fill a memory-mapped pool with packed documents, the trainer samples from it.

A row of T tokens holds documents back to back, each starting at a multiple of the model's alignment, so masks, positions and
compression groups are those of a conversation that starts at position 0. Generation runs beside training; if it is slower,
rows are simply seen again.
"""
import multiprocessing as mp
import os
import time
import numpy as np
import torch

KINDS = ("talk", "agent", "retrieval", "prose", "code", "json")


class Pool:
    """n_rows x T tokens on disk: ids, per-token weight, and per 64-token block the document start and kind."""

    def __init__(self, folder, n_rows, T, create):
        os.makedirs(folder, exist_ok=True)
        mode = "w+" if create else "r+"

        def array(name, dtype, width):
            return np.memmap(os.path.join(folder, name), dtype, mode, shape=(n_rows, width))

        self.n_rows, self.T = n_rows, T
        self.ids, self.mask = array("ids", np.uint16, T), array("mask", np.uint8, T)
        self.start, self.kind = array("start", np.uint16, T // 64), array("kind", np.uint8, T // 64)
        self.filled = array("filled", np.uint8, 1)

    def write(self, slot, row):
        self.ids[slot], self.mask[slot], self.start[slot], self.kind[slot] = row
        self.filled[slot] = 1


class Packer:
    """Greedy packing of documents into rows; a document that does not fit starts the next row."""

    def __init__(self, T, align=64):
        self.T, self.align = T, align
        self.clear()

    def clear(self):
        self.ids, self.mask = np.full(self.T, 2, np.uint16), np.zeros(self.T, np.uint8)
        self.start, self.kind = np.zeros(self.T // 64, np.uint16), np.zeros(self.T // 64, np.uint8)
        self.used = 0

    def add(self, ids, mask, kind):
        """-> a finished row or None. Documents longer than T are cut."""
        done = None
        ids, mask = ids[: self.T], mask[: self.T]
        n = -(-len(ids) // self.align) * self.align
        if self.used + n > self.T:
            self._close()
            done = (self.ids, self.mask, self.start, self.kind)
            self.clear()
        at = self.used
        self.ids[at:at + len(ids)], self.mask[at:at + len(ids)] = ids, 1 + (mask > 0)
        self.mask[at] = 0                                                        # bos is never predicted
        self.start[at // 64:(at + n) // 64], self.kind[at // 64:(at + n) // 64] = at, kind
        self.used += n
        return done

    def _close(self):
        """Unused tail: one document of padding without targets."""
        self.start[self.used // 64:] = self.used


def worker(folder, n_rows, T, streams, weights, seed, slots):
    """Fill `slots` for ever, drawing the kind of each document by weight (tokens per kind, not documents)."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.nice(19)
    pool, packer = Pool(folder, n_rows, T, create=False), Packer(T)
    made = np.zeros(len(streams))
    share = np.array(weights, float)
    share /= share.sum()
    sources = [iter(s(seed)) for s in streams]
    rest = 0.0
    while True:
        for slot in slots:
            time.sleep(rest)
            row = None
            while row is None:
                k = int(np.argmax(share - made / max(made.sum(), 1)))            # the kind most behind its share
                ids, mask = next(sources[k])
                made[k] += len(ids)
                row = packer.add(np.asarray(ids), np.asarray(mask), k)
            pool.write(slot, row)
            made *= 0.999
        rest = 0.02                                                              # once full, leave the cores to others


def start_workers(folder, n_rows, T, streams, weights, n_worker, seed):
    Pool(folder, n_rows, T, create=True)
    processes = []
    for w in range(n_worker):
        slots = list(range(w, n_rows, n_worker))
        args = (folder, n_rows, T, streams, weights, seed * 1000 + w, slots)
        processes.append(mp.get_context("fork").Process(target=worker, args=args, daemon=True))
        processes[-1].start()
    return processes


class Sampler:
    """Batches for the trainer as device tensors: ids, start [B,T] int64, weight [B,T] float, kind [B,T]."""

    def __init__(self, folder, n_rows, T, batch, device, seed=0, context_weight=0.25):
        self.pool = Pool(folder, n_rows, T, create=False)
        self.batch, self.device, self.rng = batch, device, np.random.default_rng(seed)
        self.context_weight = context_weight

    def wait(self, n=1, timeout=600):
        t = time.time()
        while int(np.asarray(self.pool.filled).sum()) < n and time.time() - t < timeout:
            time.sleep(0.2)

    def next(self):
        ready = np.flatnonzero(np.array(self.pool.filled[:, 0]))                      # a copy: workers keep writing
        pick = np.sort(self.rng.choice(ready, self.batch, replace=len(ready) < self.batch))
        gpu = self.device != "cpu"

        def put(a):
            t = torch.from_numpy(a)
            return t.pin_memory().to(self.device, non_blocking=True) if gpu else t

        ids, mask = put(self.pool.ids[pick].astype(np.int32)).long(), put(self.pool.mask[pick])
        start = put(self.pool.start[pick].astype(np.int32)).long().repeat_interleave(64, 1)
        kind = put(self.pool.kind[pick]).long().repeat_interleave(64, 1)
        weight = (mask == 2).float() + self.context_weight * (mask == 1).float()
        return ids, start, weight, kind
