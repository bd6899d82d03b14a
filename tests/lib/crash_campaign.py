"""The rounds of the campaign of crashes (process/campaign_crash.sh), several at once.

	crash_campaign.py ROUNDS SIZE SEED JOBS ENOUGH    (below $T; $FLOWSUP, $OPS, $CAMPAIGN_KEEP)

A round has homes of its own, so that its supervisor's death is nobody else's. The program is talked
to by its commands only; a process is waited for by its pidfd, so that waiting costs nothing.
"""
import collections
import concurrent.futures
import difflib
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

import crash_flow
import crash_state

FLOWSUP = os.environ["FLOWSUP"]
LIMIT = float(os.environ.get("FLOWSUP_TEST_LIMIT", 60))  # seconds without any progress
KINDS = ("once", "mend", "late")
ENDS = ("completed", "failed", "crashed", "cancelled", "timed_out")


class Wrong(Exception):
    """What must hold and does not; the round ends."""


def contents(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def lines(path):
    return contents(path).decode().splitlines()


class Process:
    """One that is ours, held by its pidfd. `none` when there is no such process any more."""

    def __init__(self, pid, home, word):
        try:
            self.fd = os.pidfd_open(pid)
        except OSError:
            self.fd = -1
        else:
            where = b"FLOWSUP_HOME=" + home.encode()
            # Read after the pidfd was opened: it is of the process that the pidfd holds.
            if (where not in contents("/proc/%d/environ" % pid).split(b"\0") or
                    word and word.encode() not in contents("/proc/%d/cmdline" % pid).split(b"\0")):
                self.close()

    def none(self):
        return self.fd < 0

    def wait(self, seconds):
        """True when it has ended."""
        if self.fd < 0:
            return True
        p = select.poll()
        p.register(self.fd, select.POLLIN)
        return bool(p.poll(int(seconds * 1000)))

    def signal(self, number):
        try:
            signal.pidfd_send_signal(self.fd, number)
        except ProcessLookupError:
            pass

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    __enter__ = lambda self: self
    __exit__ = lambda self, *error: self.close()


class Home:
    """A home, its runs' common log, and the run that is looked at."""

    def __init__(self, where, flow):
        os.makedirs(where)
        self.path, self.flow = where + "/home", flow
        self.log = where + "/log"
        self.env = dict(os.environ, FLOWSUP_HOME=self.path, RUNLOG=self.log)
        self.run = None
        os.mkdir(self.log + ".in")
        for name in (self.log, self.log + ".keys"):
            open(name, "w").close()

    def ask(self, *words):
        """A command of the program -> (exit status, what it printed, what it said)."""
        done = subprocess.run([FLOWSUP, *words], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT * 10)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def ask_json(self, *words):
        rc, out, err = self.ask(*words)
        if rc != 0:
            raise Wrong("%s: %d: %s" % (" ".join(words), rc, err))
        return json.loads(out)

    def start(self, *options):
        _, self.run, err = self.ask("start", self.flow, *options)
        if not self.run:
            raise Wrong("start: %s" % err)

    def shown(self):
        return self.ask_json("show", self.run, "--json")

    def state(self):
        return crash_state.lines(self.shown(), self.ask_json("checkpoint", "export", "--json", self.run))

    def file(self, name):
        return "%s/runs/%s/%s" % (self.path, self.run, name)

    def worker(self):
        """By the run's own log: a killed supervisor tells nothing."""
        pids = re.findall(rb'"kind":"worker".*?"pid":(\d+)', contents(self.file("attempts.log")))
        return Process(int(pids[-1]) if pids else 0, self.path, self.run)

    def processes(self, word):
        """-> those of this home with such a word in their command line, or all (None)."""
        all = (Process(int(pid), self.path, word) for pid in os.listdir("/proc") if pid.isdigit())
        return [p for p in all if not p.none()]

    def wait_for_end(self):
        """-> the status at the end, which is asked for when the worker has gone."""
        size, since = None, time.monotonic()
        while True:
            with self.worker() as worker:
                ended = worker.wait(0)
                status = self.shown()["status"] if ended else None
                if status in ENDS:
                    return status
                now = (os.path.getsize(self.log), ended)
                if now != size:
                    size, since = now, time.monotonic()
                elif time.monotonic() - since > LIMIT:
                    raise Wrong("no end of it is known: %s" % (status or "its worker goes on"))
                if ended:
                    time.sleep(0.02)
                else:
                    worker.wait(5)

    def close(self):
        for word, number in (("supervisor", signal.SIGTERM), (None, signal.SIGKILL)):
            for p in self.processes(word):
                p.signal(number)
                p.wait(LIMIT)
                p.close()


class Plainly(Home):
    """The flow without a kill: what is wanted, and how long it takes."""

    def __init__(self, where, flow, kind):
        super().__init__(where, flow)
        begin = time.monotonic()
        self.start("--wait")
        self.ms = int((time.monotonic() - begin) * 1000)
        self.wanted = self.state()
        self.mended = None
        if kind == "mend" and "status failed" in self.wanted:
            open(self.log + ".mended", "w").close()
            self.run = self.ask("resume", self.run, "--wait", *MEND)[1]
            self.mended = self.state()


# With the failures' reason gone. What such a run leaves out is what it always leaves out.
MEND = ("--retry-failed", "--drop-respawned")


class Deaths(Home):
    """The same flow with its deaths, in a chain of runs."""

    def __init__(self, where, flow, seed, plainly):
        super().__init__(where, flow)
        self.r = random.Random(seed)
        self.plainly = plainly
        with open(flow) as f:
            self.once = {o["id"] for o in json.load(f)["plan"] if o.get("idempotent") is False}
        self.allowed = set()  # to be repeated, of what must not be
        self.saved = {}  # operation: how often it was started when it was saved
        self.sent = []
        self.chain = []
        self.kills = self.refusals = 0

    # ---- what must hold ----

    def started(self):
        return collections.Counter(x for x in lines(self.log) if not x.startswith("end "))

    def check_log(self):
        times = self.started()
        wrong = ["%s was saved and ran again" % op for op, n in self.saved.items() if times[op] != n]
        wrong += ["%s must not be repeated and was" % op for op in self.once - self.allowed if times[op] > 1]
        running = collections.Counter()
        for line in lines(self.log):
            if line.startswith("end "):
                running[line[4:]] -= 1
                continue
            if running[line] > 0:
                wrong.append("%s ran beside itself" % line)
            running[line] += 1
        keys = {}
        for line in lines(self.log + ".keys"):
            op, key = line.split(" ")
            if keys.setdefault(op, key) != key:
                wrong.append("%s had two idempotency keys" % op)
        if wrong:
            raise Wrong("\n".join(wrong))

    def compare(self, wanted):
        got = self.state()
        if got != wanted:
            raise Wrong("\n".join(difflib.unified_diff(wanted, got, "wanted", "got", n=0, lineterm="")))
        rc, _, err = self.ask("checkpoint", "verify", self.run)
        if rc != 0:
            raise Wrong("its checkpoint does not verify: %s" % err)

    def check_messages(self):
        """Each is in the input of one operation only; one that is applied is in that of one."""
        rows = "\n".join(self.ask("ctl", "status", run, "--this-run", "--json")[1] for run in self.chain)
        inputs = {}
        for path in glob.glob(self.log + ".in/*"):
            inputs.setdefault(re.sub(r"\.\d{8}T.*", "", os.path.basename(path)), []).append(contents(path))
        for n in self.sent:
            text = "<text %s>" % n
            ops = [op for op, all in inputs.items() if any(text.encode() in x for x in all)]
            row = [x for x in rows.splitlines() if text in x]
            if len(ops) > 1:
                raise Wrong("message %s is in several operations: %s" % (n, " ".join(ops)))
            if len(row) != 1:
                raise Wrong("message %s has not one row: %s" % (n, row))
            state = re.search(r'"state":"([^"]*)"', row[0])[1]
            if state == "applied" and not ops:
                raise Wrong("message %s was applied and is lost" % n)
            if state in ("rejected", "never landed") and ops:
                raise Wrong("message %s is in %s and was rejected" % (n, ops[0]))
            if state not in ("applied", "claimed", "rejected", "never landed"):
                raise Wrong("message %s: %s" % (n, row[0]))

    def check_late(self):
        """Of a run that has ended by its deadline: nothing started after it, and what is settled is as
        it would have been; the rest is left for a resume."""
        if re.search(rb'"event":"DeadlineClosed".*"event":"NodeStarted"', contents(self.file("events.jsonl")), re.S):
            raise Wrong("something was started after its deadline")
        settled = crash_state.settled(self.ask_json("checkpoint", "export", "--json", self.run))
        other = sorted(set(settled) - set(self.plainly.wanted))
        if other:
            raise Wrong("settled otherwise:\n" + "\n".join(other))

    # ---- deaths ----

    def send_message(self):
        n = "%d.%d" % (len(self.chain), self.r.randrange(1 << 30))
        if self.ask("msg", self.run, "<text %s>" % n)[0] == 0:
            self.sent.append(n)

    def kill_some(self):
        """Worker, supervisor or both. True when no worker is left."""
        what = self.r.randrange(3)
        with self.worker() as worker:
            victims = [] if what == 1 or worker.none() else [worker]
            others = [] if what == 0 else self.processes("supervisor")
            for p in victims + others:
                p.signal(signal.SIGKILL)
            self.kills += len(victims)
            for p in victims + others:
                p.wait(LIMIT)
            for p in others:
                p.close()
            return worker.wait(0)

    # ---- going on ----

    def add(self, run):
        self.run = run
        self.chain.append(run)

    def resume(self, *options):
        """What must not be repeated and whose end is unknown is to be refused by its name; then it
        is allowed."""
        times = self.started()
        self.saved = {op["id"]: times[op["id"]] for op in self.shown()["ops"] if op["saved"]}
        rc, new, err = self.ask("resume", self.run, *options)
        if rc == 4 and "idempotent: false" in err:
            self.refusals += 1
            for op in re.findall(r"operation ([^ :]+): .*idempotent: false", err):
                self.allowed.add(op)
                if op in self.saved:
                    raise Wrong("%s is saved, and refused" % op)
            rc, new, err = self.ask("resume", self.run, *options, "--rerun-in-flight")
        if rc != 0 or not new:
            raise Wrong("resume %s: %d: %s" % (" ".join(options), rc, err))
        self.add(new)

    def go_on(self, kills, most_ms):
        """To the end of the job, through so many deaths, at most so far apart."""
        while True:
            if kills > 0:
                kills -= 1
                # One in three at once: while the run is made, or taken over.
                time.sleep(self.r.randint(0, self.r.choice((most_ms, most_ms, 80))) / 1000)
                if self.r.random() < 0.5:
                    self.send_message()
                if not self.kill_some():
                    continue
            status = self.wait_for_end()
            self.check_log()
            options = ["--keep-failed"]
            if status != "crashed":
                # A failure of an operation is the end of a run also where its deadline has passed.
                if status == "completed" or b'"event":"DeadlineClosed"' not in contents(self.file("events.jsonl")):
                    return
                self.check_late()
                options += ["--timeout", "%dms" % (self.r.randint(0, most_ms) + 50) if kills > 0 else "1h"]
            self.resume(*options)

    def live(self, kind):
        ms = self.plainly.ms
        self.start(*(["--timeout", "%dms" % (self.r.randint(0, ms) + 50)] if kind == "late" else []))
        self.add(self.run)
        self.go_on(self.r.randint(1, 5), ms // 2)
        self.compare(self.plainly.wanted)
        if self.plainly.mended:
            open(self.log + ".mended", "w").close()
            self.resume(*MEND)
            self.saved = {}
            self.go_on(self.r.randrange(3), ms // 3)
            self.compare(self.plainly.mended)
        self.check_messages()


class Campaign:
    def __init__(self, rounds, size, seed, enough):
        self.rounds, self.size, self.seed = rounds, size, seed
        self.until = time.monotonic() + enough
        self.lock = threading.Lock()
        self.done = self.failed = self.kills = self.resumes = self.refusals = 0

    def tell(self, number, text, wrong):
        with self.lock:
            self.done += 1
            self.failed += wrong is not None
            for line in (wrong or "").splitlines():
                print("# " + line)
            print("%s %d - round %d%s" % ("ok" if wrong is None else "not ok", self.done, number, text), flush=True)

    def round(self, number):
        # One of each kind in any case.
        if number > len(KINDS) and time.monotonic() >= self.until:
            return
        begin = time.monotonic()
        seed = self.seed + number
        kind = KINDS[seed % len(KINDS)]
        where = "%s/%d" % (os.environ["T"], seed)
        flow = where + "/flow.json"
        os.mkdir(where)
        with open(flow, "w") as f:
            json.dump(crash_flow.flow(seed, kind, self.size), f, indent=1)
        plainly = deaths = wrong = None
        try:
            plainly = Plainly(where + "/plain", flow, kind)
            deaths = Deaths(where + "/deaths", flow, seed, plainly)
            deaths.live(kind)
        except Exception as e:
            wrong = "%s: %s" % (deaths and deaths.run, e if isinstance(e, Wrong) else repr(e))
        for home in filter(None, (plainly, deaths)):
            home.close()
        if wrong is None:
            text = ", %s: %d runs, %d lines of what came out are the same, %.1f s" % (
                kind, len(deaths.chain), len(plainly.wanted), time.monotonic() - begin)
        else:
            text = ", %s (CAMPAIGN_SEED=%d CAMPAIGN_ROUNDS=1 CAMPAIGN_SIZE=%d): runs %s" % (
                kind, seed - 1, self.size, deaths and " ".join(deaths.chain))
            if os.environ.get("CAMPAIGN_KEEP"):
                shutil.copytree(where, "%s/%d" % (os.environ["CAMPAIGN_KEEP"], seed), symlinks=True,
                                ignore=lambda d, names: [n for n in names if n.endswith(".sock")])
        shutil.rmtree(where, ignore_errors=True)
        if deaths:
            with self.lock:
                self.kills += deaths.kills
                self.resumes += max(0, len(deaths.chain) - 1)
                self.refusals += deaths.refusals
        self.tell(number, text, wrong)

    def run(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self.round, n) for n in range(1, self.rounds + 1)]:
                done.result()
        print("# %d kills of workers, %d resumes, %d refused by name at first" % (
            self.kills, self.resumes, self.refusals))
        print("1..%d" % self.done)
        return self.failed == 0


rounds, size, seed, jobs, enough = map(int, sys.argv[1:])
sys.exit(not Campaign(rounds, size, seed, enough).run(jobs))
