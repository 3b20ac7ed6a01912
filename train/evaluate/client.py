"""generate() functions that ask a running engine instead of a model in this process."""

import concurrent.futures
import json
import shlex
import subprocess
import urllib.request

from . import encode, tokenizer


def _each(function, prompts, n_thread, max_new, stop_ids):
    """Engines keep the end token to themselves: an answer shorter than the limit gets it back."""
    texts = [tokenizer().decode(p, skip_special_tokens=False) for p in prompts]
    with concurrent.futures.ThreadPoolExecutor(n_thread) as pool:
        answers = [encode(t) for t in pool.map(function, texts)]
    return [a + list(stop_ids)[:1] if len(a) < max_new else a for a in answers]


def over_http(url, model="hadal", n_thread=8):
    """POST {url}/v1/completions with the rendered prompt text."""
    def generate(prompts, max_new, stop_ids, temperature=0):
        def ask(text):
            body = json.dumps({"model": model, "prompt": text, "max_tokens": max_new,
                               "temperature": temperature}).encode()
            request = urllib.request.Request(url.rstrip("/") + "/v1/completions", body,
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=600) as reply:
                return json.load(reply)["choices"][0]["text"]
        return _each(ask, prompts, n_thread, max_new, stop_ids)
    return generate


def over_command(command, n_thread=2):
    """Run a command per prompt: prompt text on standard input, completion on standard output.

    "{max_new}" in the command is replaced by the token limit; the line feed that ends its output is not the answer's.
    """
    def generate(prompts, max_new, stop_ids, temperature=0):
        argv = [a.replace("{max_new}", str(max_new)) for a in shlex.split(command)]

        def ask(text):
            done = subprocess.run(argv, input=text.encode(), stdout=subprocess.PIPE, check=True)
            return done.stdout.decode(errors="replace").removesuffix("\n")
        return _each(ask, prompts, n_thread, max_new, stop_ids)
    return generate
