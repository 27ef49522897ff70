"""How much memory a step takes that renames the package of a root manifest, beside the first load of the same tree.

In: a program and a number of files. Out: for the load, the rename and the rename back: entries, seconds, peak of the resident memory.

    python3 benches/manifest.py target/release/tidemill 12000

The tree is made up: Rust files of ten functions each below one `Cargo.toml`, 120,000 entries of 12,000 files. Each step is a process of its own,
so the two renames restore the head first. Needs git and Linux.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time


def manifest(name):
    return f'[package]\nname = "{name}"\nversion = "0.1.0"\n'.encode()


def source(words, number):
    def some():
        return " ".join(random.choice(words) for _ in range(8))

    functions = []
    for item in range(10):
        lines = "".join(f"    let {random.choice(words)} = {random.choice(words)}({random.randint(0, 999)}); // {some()}\n" for _ in range(7))
        functions.append(f"/// {some()}.\n/// {some()}.\npub fn {random.choice(words)}_{number}_{item}(value: u32) -> u32 {{\n{lines}    0\n}}\n\n")
    return "".join(functions).encode()


def commit(repository, seconds, files, parent):
    """Writes a commit of these files on top of main."""
    importer = subprocess.Popen(["git", "-C", repository, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    write = importer.stdin.write
    write(b"commit refs/heads/main\ncommitter C <c@example.org> %d +0000\ndata 1\nx\n" % seconds)
    if parent:
        write(b"from refs/heads/main^0\n")
    for path, content in files:
        write(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
    importer.stdin.close()
    if importer.wait() != 0:
        sys.exit("git fast-import failed")


def track(program, store, repository):
    """Catches up; returns what the program says of it, the seconds, and the peak of its resident memory in MiB."""
    started = time.monotonic()
    child = subprocess.Popen(
        [program, "--data", store, "track", repository, "--once", "--json", "-q"], stdout=subprocess.PIPE, text=True
    )
    summary = child.stdout.read().strip().splitlines()[-1]
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit("the program failed")
    return json.loads(summary)["summary"], time.monotonic() - started, usage.ru_maxrss / 1024


def main():
    program, files = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    random.seed(5)
    letters = ["bcdfgklmnprst", "aeiou"]
    words = ["".join(random.choice(letters[0]) + random.choice(letters[1]) for _ in range(random.randint(2, 4))) for _ in range(4000)]
    with tempfile.TemporaryDirectory() as folder:
        repository, store = os.path.join(folder, "tree.git"), os.path.join(folder, "store")
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repository], check=True)
        tree = [("Cargo.toml", manifest("mill"))]
        tree += [(f"src/d{number % 200}/f{number}.rs", source(words, number)) for number in range(files)]
        first = None
        for step, seconds, changed in [
            ("first load", 1700000000, tree),
            ("rename", 1700000100, [("Cargo.toml", manifest("tide"))]),
            ("rename back", 1700000200, [("Cargo.toml", manifest("mill"))]),
        ]:
            commit(repository, seconds, changed, first is not None)
            summary, took, peak = track(program, store, repository)
            first = first or peak
            print(f"{step}: {summary['inserted']} entries in, {summary['retracted']} out, {took:.1f} s, {peak:.0f} MiB, {peak / first:.2f} of the load")


main()
