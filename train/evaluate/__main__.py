"""python -m train.evaluate [agent|retrieval|talk ...] (--http URL | --command CMD) --dialect v41"""

import argparse
import json

from . import agent, client, retrieval, talk

PARTS = {"agent": (agent.run, 200), "retrieval": (retrieval.run, 200), "talk": (talk.run, 50)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("parts", nargs="*", default=list(PARTS))
    p.add_argument("--http", help="base URL of a server with /v1/completions")
    p.add_argument("--command", help="command that completes its standard input")
    p.add_argument("--dialect", default="v41")
    p.add_argument("-n", type=int, help="instances per part")
    a = p.parse_args()
    if bool(a.http) == bool(a.command):
        p.error("give either --http or --command")
    generate = client.over_http(a.http) if a.http else client.over_command(a.command)
    for part in a.parts:
        run, n = PARTS[part]
        print(part, json.dumps(run(generate, a.dialect, a.n or n), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
