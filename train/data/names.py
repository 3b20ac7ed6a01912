"""Made-up names, numbers and words, split into a training and a held-out pool.

Why: copying must work for values never seen in training. The pool of a value is decided by a hash
of the value itself, so the two pools can never overlap, whatever the seed. All names come from one
syllable inventory, so held-out names are new combinations rather than new letters.
"""

import zlib

ONSETS = ("b d f g k l m n p r s t v z br dr fl gr kr pl pr sh sk st tr").split()
VOWELS = "aeiou"
CODAS = ("", "", "", "", "n", "l", "r", "m", "k", "x")
HELD_OUT_SHARE = 8      # one value in eight is held out

FIRST = ("max min load save read send user file page cache retry batch queue token event node "
         "image index frame log disk mail task time port host color size count limit total price "
         "level score speed width height depth delay timeout buffer worker client server session "
         "record table report order item parse check build merge split format update "
         "start stop").split()
SECOND = ("size limit count rate name path mode level value total delay timeout port host key "
          "list map id index depth width height speed score price data text line flag step "
          "start end base unit factor offset ratio weight").split()
NOUNS = ("apple lamp stone river chair candle bottle basket ladder window pencil carpet hammer "
         "kettle mirror pillow ribbon saddle shovel button needle rope bell drum flute kite "
         "boat net anchor sail oar crate barrel bucket brush broom cup plate spoon bowl").split()
COLORS = "red blue green white black grey brown yellow orange purple pink silver".split()


def is_held_out(value):
    """Whether a name or a number (as text) belongs to the held-out pool."""
    return zlib.crc32(str(value).encode()) % HELD_OUT_SHARE == 0


class Names:
    """Draws names of one pool from one random generator."""

    def __init__(self, rng, held_out=False):
        self.rng = rng
        self.held_out = held_out

    def _accept(self, draw):
        while True:
            value = draw()
            if is_held_out(value) == self.held_out:
                return value

    def _syllables(self):
        r = self.rng
        n = 2 if r.random() < 0.75 else 3
        return "".join(r.choice(ONSETS) + r.choice(VOWELS)
                       + (r.choice(CODAS) if i == n - 1 or r.random() < 0.3 else "")
                       for i in range(n))

    def word(self):
        """A pronounceable word such as "velto"."""
        return self._accept(self._syllables)

    def words(self, n):
        """n different words."""
        out = []
        while len(out) < n:
            w = self.word()
            if w not in out:
                out.append(w)
        return out

    def number(self, n_digit):
        """A number of exactly n digits, as int."""
        return self._accept(lambda: self.rng.randrange(10 ** (n_digit - 1), 10 ** n_digit))

    def amount(self):
        """A number a setting might have: two to five digits."""
        return self.number(self.rng.choice((2, 2, 3, 3, 4, 4, 5)))

    def identifier(self):
        """A snake_case name such as "max_velto", "retry_limit" or "velto"."""
        return self._accept(self._identifier)

    def _identifier(self):
        r = self.rng
        k = r.random()
        if k < 0.45:
            return r.choice(FIRST) + "_" + r.choice(SECOND)
        if k < 0.65:
            return r.choice(FIRST) + "_" + self._syllables()
        if k < 0.85:
            return self._syllables() + "_" + r.choice(SECOND)
        return self._syllables()

    def identifiers(self, n):
        out = []
        while len(out) < n:
            x = self.identifier()
            if x not in out:
                out.append(x)
        return out

    def stem(self):
        """A file name without its ending."""
        r = self.rng
        if r.random() < 0.6:
            return self.word()
        return self._accept(lambda: r.choice(FIRST) if r.random() < 0.4
                            else r.choice(FIRST) + "_" + self._syllables())

    def title(self):
        """A capitalised name for a person."""
        return self._accept(lambda: self._syllables().capitalize())

    def value(self):
        """A value of a planted fact: mostly digits, sometimes a word."""
        r = self.rng
        if r.random() < 0.7:
            return str(self.number(r.choice((4, 4, 5, 5, 6))))
        return self.word()
