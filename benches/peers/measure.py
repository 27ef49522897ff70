"""One phase of one peer in a process of its own, so that memory and start are its own. `run.py` starts it.

In: a JSON object of options as the only argument. Out: a JSON file with the figures.

    commits   load the commit before the range, then every commit of it: times, texts embedded, memory, correctness
    reopen    open what the first phase left, with the same tree: nothing has to be done
    rebuild   load the last commit into an empty folder: what the answers and the entries are compared with
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path

from corpus import Corpus

PEERS = {
    "tidemill": ("tidemill_peer", "TidemillPeer"),
    "llamaindex": ("llamaindex_peer", "LlamaIndexPeer"),
    "langchain": ("langchain_peer", "LangChainPeer"),
    "langchain-incremental": ("langchain_peer", "LangChainIncrementalPeer"),
    "rebuild": ("rebuild_peer", "RebuildPeer"),
    "cocoindex": ("cocoindex_peer", "CocoIndexPeer"),
    "pathway": ("pathway_peer", "PathwayPeer"),
}
QUESTIONS = [
    "how to spawn a camera entity",
    "insert component into world",
    "system ordering before after",
    "render graph node",
    "asset loader async",
    "transform propagation hierarchy",
    "query filter with without changed",
    "shader material bind group",
    "window resize event",
    "animation clip blend",
    "ui layout flex node",
    "text font atlas",
    "mesh vertex attribute",
    "scene serialization reflect",
    "gamepad input axis",
    "commands despawn children",
    "light shadow cascade",
    "schedule run condition state",
    "audio playback sink",
    "read a file line by line",
]
HITS = 10


def most_memory(process):
    """Returns the most resident memory of a process so far, in MB."""
    for line in Path(f"/proc/{process or 'self'}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def processor_seconds(process):
    """Returns the processor time that a process has taken so far, all threads together."""
    if process is None:
        return time.process_time()
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def difference(held, expected):
    """Returns what is stale and what is missing, as counts and up to three paths each."""
    stale, missing = held - expected, expected - held
    paths = lambda entries: sorted({path for path, _ in entries})[:3]
    return {
        "stale": len(stale),
        "missing": len(missing),
        "stale_paths": paths(stale),
        "missing_paths": paths(missing),
    }


def check(peer, step):
    """Compares what a peer holds with the commit's tree: entries where they can be known, paths in any case."""
    held, expected = peer.entries(), peer.expected(step)
    gone = {path for path, _ in held} - set(step.documents)
    figures = {"commit": step.commit, "entries": len(held), "paths": len({path for path, _ in held})}
    if expected is not None:
        figures |= difference(held, expected)
    else:
        known = {path for path, text in step.changes.items() if text is None}
        figures["deleted_paths_held"] = sorted(gone & known)
    return figures, held


def run(options):
    sys.path.insert(0, str(Path(__file__).parent))
    module, kind = PEERS[options["peer"]]
    vectors = None
    if options["peer"] != "tidemill":
        from static_vectors import StaticVectors

        vectors = StaticVectors()
    corpus = Corpus(options["repository"])
    commits = options["commits"]
    peer = getattr(importlib.import_module(module), kind)(options["folder"], vectors, options)
    figures = {"name": peer.name, "answers": peer.answers, "steps": [], "checks": []}

    step = corpus.load(commits[0] if options["phase"] == "commits" else commits[-1])
    figures["documents"] = len(step.documents)
    figures["harness_mb"] = most_memory(None)
    begun = time.perf_counter()
    peer.load(step)
    figures["load_s"] = time.perf_counter() - begun
    figures["peak_mb"] = most_memory(peer.process())
    figures["load_embedded"], figures["load_embed_s"] = peer.embedded()

    if options["phase"] == "commits":
        for parent, commit in zip(commits, commits[1:]):
            texts, seconds = peer.embedded()
            processor = processor_seconds(peer.process())
            begun = time.perf_counter()
            step = corpus.step(parent, commit)
            peer.apply(step)
            took = time.perf_counter() - begun
            processor = processor_seconds(peer.process()) - processor
            now_texts, now_seconds = peer.embedded()
            figures["steps"].append(
                {
                    "commit": commit,
                    "changes": len(step.changes),
                    "removed": sum(text is None for text in step.changes.values()),
                    "ms": 1000 * took,
                    "processor_ms": 1000 * processor,
                    "embed_ms": 1000 * (now_seconds - seconds),
                    "embedded": now_texts - texts,
                }
            )
            # A check reads the whole index into this process, which is not the peer's doing.
            if not figures["checks"] or peer.process():
                figures["peak_mb"] = most_memory(peer.process())
            if figures["steps"][-1]["removed"] and commit != commits[-1]:
                figures["checks"].append(check(peer, step)[0])
    begun = time.perf_counter()
    peer.persist()
    figures["persist_s"] = time.perf_counter() - begun
    if options["phase"] != "reopen":
        checked, held = check(peer, step)
        figures["checks"].append(checked)
        figures["held"] = sorted(held)
        figures["hits"] = [peer.search(question, HITS) for question in QUESTIONS]
    peer.close()
    corpus.close()
    return figures


def main():
    options = json.loads(sys.argv[1])
    figures = run(options)
    Path(options["out"]).write_text(json.dumps(figures))
    if options["peer"] in ("cocoindex", "pathway"):
        # They follow a folder in threads that nothing ends.
        os._exit(0)


if __name__ == "__main__":
    main()
