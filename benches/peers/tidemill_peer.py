"""tidemill itself, as a program: the same commits arrive in a clone that `tidemill track --json` follows.

Its own splitter and its whole index (words and vectors) take part, so what it should hold is what a store holds that is
made from nothing at the same commit. The clock starts before the ref is written and stops when the epoch's line is read.
"""

import json
import subprocess

from peer import Peer


class TidemillPeer(Peer):
    name = "tidemill"
    answers = "words and vectors, fused"
    child = None

    def load(self, step):
        self.work = self.seconds = 0
        self.clone = self.folder / "clone.git"
        if not self.clone.exists():
            self._git(["clone", "-q", "--bare", "--shared", self.options["repository"], str(self.clone)])
            self._git(["-C", str(self.clone), "symbolic-ref", "HEAD", "refs/heads/peers"])
        self._move(step.commit)
        live = self.options["phase"] == "commits"
        command = self._command("track", "--json", str(self.clone), *([] if live else ["--once"]))
        log = open(self.folder / "log", "ab")
        if live:
            self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
            self._wait(step.commit)
        else:
            for line in subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=log).stdout.splitlines():
                self._count(json.loads(line))

    def apply(self, step):
        self._move(step.commit)
        self._wait(step.commit)

    def search(self, question, k):
        out = self._run("search", "--json", "-k", str(k), question)
        hits = json.loads(out)["hits"]
        return [(hit["path"], f"{hit['lines']} {hit['text']}") for hit in hits]

    def entries(self):
        lines = map(json.loads, self._run("dump", "--json").splitlines())
        return {(line["path"], f"{line['lines']} {line['text_hash']}") for line in lines}

    def expected(self, step):
        return None

    def embedded(self):
        return self.work, self.seconds

    def process(self):
        return self.child.pid if self.child else None

    def close(self):
        if self.child:
            self.child.terminate()
            self.child.wait()

    def _command(self, *arguments):
        return [self.options["tidemill"], "--data", str(self.folder / "store"), *arguments]

    def _run(self, *arguments):
        return subprocess.run(self._command(*arguments), check=True, capture_output=True).stdout.decode()

    def _git(self, arguments):
        subprocess.run(["git", *arguments], check=True)

    def _move(self, commit):
        self._git(["-C", str(self.clone), "update-ref", "refs/heads/peers", commit])

    def _wait(self, commit):
        for line in self.child.stdout:
            epoch = json.loads(line)
            self._count(epoch)
            if epoch.get("commit") == commit:
                return
        raise RuntimeError(f"tidemill ended before {commit}: {self.folder / 'log'} says why")

    def _count(self, epoch):
        if "epoch" in epoch:
            self.work += epoch["work"]["embedded"]
            self.seconds += epoch["ms"]["embed"] / 1000
