# SPDX-License-Identifier: MIT
"""Runs a server and a client, as two processes under `verbena run` in a world of their own."""
import concurrent.futures
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

from programs import environment

LOOK_S = 0.005  # between two looks at a process
GRACE_S = 5  # for a process whose peer has failed

REFUSED = "refused"  # the program itself refuses its arguments: the server ends before it listens
PASSED = "passed"
FAILED = "failed"
HUNG = "hung"  # at least one process had to be ended after the time limit


@dataclass
class End:
    """How a process ended: its status (None: the runner ended it), and all that it printed."""
    words: list
    status: int = None
    output: str = ""

    def __str__(self):
        how = "ended by the runner" if self.status is None else f"status {self.status}"
        return f"$ {' '.join(self.words)}  # {how}\n{self.output}"


@dataclass
class Outcome:
    kind: str
    server: End
    client: End = None
    seconds: float = 0

    def output(self):
        return self.server.output + (self.client.output if self.client else "")

    def __str__(self):
        return f"{self.kind} after {self.seconds:.1f} s\n{self.server}" + \
            (f"\n{self.client}" if self.client else "")


class Port:
    """A free TCP port. It is bound here without listening, so that no other program gets it; a server
    that sets SO_REUSEADDR can listen on it."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("", 0))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.number = self.socket.getsockname()[1]

    def close(self):
        self.socket.close()


def listening(port):
    """Returns the inodes of the sockets that listen on a TCP port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            next(lines)
            for line in lines:
                columns = line.split()
                if columns[3] == "0A" and int(columns[1].rsplit(":", 1)[1], 16) == port:
                    found.add(f"socket:[{columns[9]}]")
    return found


def has_socket(pid, inodes):
    """A process may not be looked at while it enters a user namespace."""
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            try:
                if os.readlink(f"{folder}/{name}") in inodes:
                    return True
            except (FileNotFoundError, PermissionError):
                pass
    except (FileNotFoundError, PermissionError):
        pass
    return False


class Process:
    def __init__(self, words, folder, **more):
        self.words = [str(word) for word in words]
        self.log = tempfile.TemporaryFile("w+", dir=folder, errors="replace")
        self.popen = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=self.log,
                                      stderr=subprocess.STDOUT, env=environment(**more), cwd=folder,
                                      start_new_session=True)

    def ended(self):
        return self.popen.poll() is not None

    def end(self):
        """Ends the process if it still runs. Returns how it ended."""
        status = self.popen.poll()
        try:  # its children, too
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()
        self.log.seek(0)
        with self.log:
            return End(self.words, status, self.log.read())


def wait_until(condition, deadline):
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


class Runner:
    """Runs pairs of programs. The worlds of two runs never meet: each has a name of its own."""
    count = 0
    lock = threading.Lock()

    def __init__(self, verbena, wire="shared", link_layer="ethernet", options=()):
        self.run_words = [pathlib.Path(verbena).resolve(), "run", "--wire", wire,
                          "--link-layer", link_layer, *options]

    def world(self):
        with Runner.lock:
            Runner.count += 1
            return f"pair-{os.getpid()}-{Runner.count}"

    def run(self, program, limit_s=60, client_words=()):
        """program: a function that takes a TCP port and returns the words of the server. The client has
        these and client_words, by default the server's host."""
        port = Port()
        began = time.monotonic()
        world = ("--world", self.world())
        words = [*self.run_words, *world, "--", *program(port.number)]
        with tempfile.TemporaryDirectory() as folder:
            server = Process(words, folder)
            client = None
            try:
                wait_until(lambda: server.ended() or
                           has_socket(server.popen.pid, listening(port.number)), began + limit_s)
                if not server.ended():
                    client = Process([*words, *(client_words or ("localhost",))], folder)
                    self.wait_for_both(server, client, began + limit_s)
            finally:
                ends = [process.end() for process in (server, client) if process]
                port.close()
        return Outcome(self.kind(ends), *ends, seconds=time.monotonic() - began)

    @staticmethod
    def wait_for_both(server, client, deadline):
        both = (server, client)
        wait_until(lambda: all(p.ended() for p in both) or
                   any(p.popen.poll() for p in both), deadline)
        wait_until(lambda: all(p.ended() for p in both),
                   min(deadline, time.monotonic() + GRACE_S))

    @staticmethod
    def kind(ends):
        if len(ends) == 1:
            return HUNG if ends[0].status is None else REFUSED
        if any(end.status for end in ends):
            return FAILED
        return HUNG if any(end.status is None for end in ends) else PASSED


@dataclass
class Case:
    """A pair of processes with the outcome that is expected."""
    runner: Runner
    words: list  # the program and its arguments, without the port
    kinds: tuple = (PASSED,)  # the outcomes that are right
    limit_s: float = 60
    bad: tuple = ()  # what the programs must not print
    good: tuple = ()  # what one of them must print
    outcome: Outcome = field(default=None, repr=False)

    def __str__(self):
        options = [str(word) for word in self.runner.run_words[2:]]
        return f"{' '.join(options)} {' '.join(self.words)}"

    def run(self):
        self.outcome = self.runner.run(lambda port: [*self.words, "-p", str(port)], self.limit_s)
        return self

    def problem(self):
        """Returns what is wrong, or None."""
        output = self.outcome.output()
        if self.outcome.kind not in self.kinds:
            return f"{self.outcome.kind}, not {' or '.join(self.kinds)}"
        if self.outcome.kind == HUNG:
            return None
        for word in self.bad:
            if word in output:
                return f"printed '{word}'"
        for word in self.good:
            if word not in output:
                return f"did not print '{word}'"
        return None


def run_cases(cases, jobs=max(1, os.cpu_count() // 2), report=None):
    """Runs cases, some at the same time: two processes that poll need two cores. Prints a line for each problem, with both outputs. Returns the
    number of problems."""
    problems = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(case.run) for case in cases]):
            case = done.result()
            problem = case.problem()
            if problem:
                problems += 1
                print(f"FAIL {case}: {problem}\n{case.outcome}\n", flush=True)
            if report:
                report(case, problem)
    print(f"{len(cases) - problems} passed, {problems} failed", flush=True)
    return problems
