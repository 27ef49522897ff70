#!/usr/bin/env python3
"""Peers, side by side: the same commits of the same repository, the same vectors, one table.

In: a repository, a folder for everything that is made, tidemill's program. Out: a markdown table, and every figure in
`FOLDER/peers.json`. Nothing is written outside of the folder.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # beside the sources nothing is to be left

from corpus import Corpus  # noqa: E402
from measure import PEERS  # noqa: E402

HERE = Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repo", help="a git repository; its HEAD is the last commit")
    parser.add_argument("--commits", type=int, default=20, help="how many first-parent commits arrive one by one (20)")
    parser.add_argument("--folder", required=True, type=Path, help="where everything is made; kept afterwards")
    parser.add_argument("--peers", default="all", help="all, or some of: " + ",".join(PEERS))
    parser.add_argument("--tidemill", default="tidemill", help="the program; `tidemill` on the path by default")
    parser.add_argument("--smoke", action="store_true", help="three commits of this repository: figures mean nothing")
    chosen = parser.parse_args()
    if chosen.smoke:
        chosen.repo, chosen.commits = chosen.repo or str(HERE.parents[1]), 3
    if not chosen.repo:
        parser.error("--repo is missing")
    if chosen.commits < 1:
        parser.error("--commits must be at least 1")
    chosen.peers = list(PEERS) if chosen.peers == "all" else chosen.peers.split(",")
    unknown = [peer for peer in chosen.peers if peer not in PEERS]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}")
    return chosen


def environment(folder):
    """Keeps what libraries write at home, and what they would send, inside of the folder."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return kept | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TMPDIR": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "COCOINDEX_DISABLE_USAGE_TRACKING": "1",
        "HF_HUB_OFFLINE": "1",
        "LANGSMITH_TRACING": "false",
    }


def python_of(peer, folder):
    """Returns the interpreter of a peer's virtual environment, made if it is not there, and what is installed."""
    if peer == "tidemill":
        return sys.executable, []
    package = peer.split("-")[0]
    wanted, place = HERE / "requirements" / f"{package}.txt", folder / "environments" / package
    python, done = place / "bin" / "python", place / "installed"
    if not done.exists() or done.read_text() != wanted.read_text():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--no-cache-dir", "-r", str(wanted)]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        done.write_text(wanted.read_text())
    lines = [line.strip() for line in wanted.read_text().splitlines()]
    return str(python), [line for line in lines if line and not line.startswith("#")]


def phase(python, folder, options, name, work, log):
    """Runs one phase and returns its figures with the wall time of the whole process."""
    out = folder / f"{options['peer']}-{name}.json"
    out.unlink(missing_ok=True)
    given = options | {"phase": name, "folder": str(work), "out": str(out)}
    begun = time.perf_counter()
    with open(log, "ab") as errors:
        command = [python, str(HERE / "measure.py"), json.dumps(given)]
        ended = subprocess.run(command, env=environment(folder), stdout=errors, stderr=errors)
    if ended.returncode != 0:
        raise RuntimeError(f"{options['peer']}: {name} ended with {ended.returncode}; the end of {log} says why")
    figures = json.loads(out.read_text())
    figures["process_s"] = time.perf_counter() - begun
    out.unlink()
    return figures


def size(folder):
    """Returns the bytes below a folder without the copy of the source, which some peers watch there."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(file.stat().st_size for file in files if file.relative_to(folder).parts[0] not in ("tree", "clone.git"))


def measure(peer, chosen, commits):
    """Returns all figures of one peer."""
    python, versions = python_of(peer, chosen.folder)
    work, again = chosen.folder / "work" / peer, chosen.folder / "work" / f"{peer}-rebuilt"
    for place in (work, again):
        shutil.rmtree(place, ignore_errors=True)
    log = chosen.folder / f"{peer}.log"
    log.unlink(missing_ok=True)
    options = {
        "peer": peer,
        "repository": str(Path(chosen.repo).resolve()),
        "commits": commits,
        "tidemill": shutil.which(chosen.tidemill) or str(Path(chosen.tidemill).resolve()),
    }
    live = phase(python, chosen.folder, options, "commits", work, log)
    live["store_mb"] = size(work) / 1e6
    reopened = phase(python, chosen.folder, options, "reopen", work, log)
    rebuilt = phase(python, chosen.folder, options, "rebuild", again, log)

    held, anew = ({tuple(entry) for entry in figures.pop("held")} for figures in (live, rebuilt))
    live["against_rebuild"] = {"stale": len(held - anew), "missing": len(anew - held)}
    pairs = list(zip(live.pop("hits"), rebuilt.pop("hits")))
    overlaps = [len({tuple(h) for h in a} & {tuple(h) for h in b}) / max(len(b), 1) for a, b in pairs]
    live["drift"] = {"same_hits": statistics.mean(overlaps), "same_order": sum(a == b for a, b in pairs), "of": len(pairs)}
    shutil.rmtree(again)
    return {"versions": versions, "live": live, "reopened": reopened, "rebuilt": rebuilt}


def row(figures):
    """Returns a peer's line of the table."""
    live, reopened = figures["live"], figures["reopened"]
    times = [step["ms"] for step in live["steps"]]
    own = [step["ms"] - step["embed_ms"] for step in live["steps"]]
    processor = [step["processor_ms"] for step in live["steps"] if "processor_ms" in step]
    persisted = live.get("persist_s", 0.0)
    wrong = [check for check in live["checks"] if check.get("stale") or check.get("missing")]
    wrong += [check for check in live["checks"] if check.get("deleted_paths_held")]
    against = live["against_rebuild"]
    checks = f"{len(live['checks']) - len(wrong)} of {len(live['checks'])}; {against['stale']} / {against['missing']}"
    drift = live["drift"]
    return [
        live["name"],
        live["answers"],
        f"{live['load_s']:.1f} s ({live['load_embed_s']:.1f})",
        f"{reopened['process_s']:.2f} s, {reopened['load_embedded']} texts",
        f"{statistics.median(times):,.0f} / {max(times):,.0f} ms ({statistics.median(own):,.0f})"
        + (f", {persisted:.1f} s" if persisted > 0.01 else ""),
        f"{statistics.mean(processor):,.0f} ms" if processor else "not measured",
        f"{sum(step['embedded'] for step in live['steps']):,}",
        f"{live['peak_mb']:,.0f} MB ({live['harness_mb']:,.0f})" if live["name"] != "tidemill" else f"{live['peak_mb']:,.0f} MB",
        f"{live['store_mb']:,.0f} MB",
        checks,
        f"{100 * drift['same_hits']:.1f} %, {drift['same_order']} of {drift['of']}",
    ]


HEADS = [
    "peer",
    "answers",
    "cold load (embedding)",
    "start with nothing to do",
    "commit to searchable, p50 / max (p50 without embedding), and to write down what only memory holds",
    "processor time of a commit, mean",
    "texts embedded by the commits",
    "peak memory (harness alone)",
    "store",
    "checks against the tree that passed; stale / missing against a rebuild",
    "rank drift: same hits, same order",
]


def table(results):
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(row(figures)) + " |" for figures in results.values() if "live" in figures]
    return "\n".join(lines)


def machine():
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{model[0] if model else platform.machine()}, {cores} cores, load {load}, Python {platform.python_version()}"


def main():
    chosen = arguments()
    chosen.folder = chosen.folder.resolve()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(chosen.repo)
    commits = corpus.commits(chosen.commits)
    corpus.close()
    if len(commits) < 2:
        sys.exit(f"cannot replay {chosen.repo}: it has fewer than two first-parent commits; fetch more of its history")
    results, place = {}, chosen.folder / "peers.json"
    report = {"machine": machine(), "repository": chosen.repo, "commits": commits, "peers": results}
    if place.exists():
        # A run of other peers over the same commits in the same folder is added to, so peers can be run one by one.
        before = json.loads(place.read_text())
        if before["commits"] == commits:
            results |= before["peers"]
    for peer in chosen.peers:
        begun = time.perf_counter()
        try:
            results[peer] = measure(peer, chosen, commits)
        except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
            results[peer] = {"failed": str(error)}
            print(f"{peer} has no figures: {error}", file=sys.stderr)
        results[peer]["load_average"] = os.getloadavg()
        place.write_text(json.dumps(report, indent=1))
        print(f"{peer}: {time.perf_counter() - begun:.0f} s in all", file=sys.stderr)
    print(report["machine"])
    print(f"{len(commits) - 1} commits, {commits[0][:10]} to {commits[-1][:10]}\n")
    print(table(results))
    if any("failed" in figures for figures in results.values()):
        sys.exit(3)


if __name__ == "__main__":
    main()
