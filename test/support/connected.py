# SPDX-License-Identifier: MIT
"""Runs a server and a client that meet by the connection manager, as two processes under `verbena run`."""
import json
import os
import pathlib
import sys
import tempfile
import time
from dataclasses import dataclass

from pairs import Port, Process, has_socket, listening, wait_until
from programs import NETWORK

LIMIT_S = 60
RACES_MAX = 5  # as often a pair that has lost a race with itself is run again
# A line of the server's event log after which clients reach the server: it listens, or has joined the group.
PORT = "PORT"  # the word of a program that becomes a port of the server
READY = {"verb": "cm_listen", "result": 0}, {"event": "RDMA_CM_EVENT_MULTICAST_JOIN"}


@dataclass
class Pair:
    server: list
    client: list
    forever: bool = False  # the server ends by a signal only
    options: tuple = ()  # of verbena run
    good: tuple = ()  # what the client must print
    tcp: object = None  # the client begins with a connection to this TCP port: PORT, or a number
    rule: str = ""  # a fault rule for the server
    sent: tuple = ()  # with the rule: (message, how often it must be in the server's trace)
    race: str = ""  # what a program prints that loses a race with its own threads

    def __str__(self):
        return " ".join(map(str, self.client))


# From the first bytes of a message's header: base version, class, class version, method. The attribute ID
# is 16 bytes behind them. docs/cm-messages.md
HEADER = bytes((1, 7, 2, 3))
ATTRIBUTES = {"REQ": 0x10, "REP": 0x13}


def count_messages(trace, message):
    """Counts a message of the connection manager in a capture file, in whose frames it stands once."""
    text = trace.read_bytes()
    found = [i for i in range(len(text) - 18) if text[i:i + 4] == HEADER]
    return sum(int.from_bytes(text[i + 16:i + 18], "big") == ATTRIBUTES[message] for i in found)


def problem(pair, server, client, sent):
    """Returns what is wrong with two ends, and with how often the message of the rule was sent; or None."""
    if pair.rule and sent != pair.sent[1]:
        return f"{pair.sent[0]} was sent {sent} times\n{server}\n{client}"
    missing = [word for word in pair.good if word not in client.output]
    if client.status == 0 and not missing and (server.status == 0 or
                                                (pair.forever and server.status is None)):
        return None
    return f"{missing or ''}\n{server}\n{client}"


def events(log):
    """The complete lines of an event log, whose process may still write: 0 bytes may follow them."""
    lines = log.read_bytes().rstrip(b"\0").split(b"\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


def is_ready(pair, server, port, log):
    if pair.tcp:
        return has_socket(server.popen.pid, listening(port.number if pair.tcp == PORT else pair.tcp))
    return any(wanted.items() <= event.items() for event in events(log) for wanted in READY)


class Runner:
    """Runs pairs whose server has an address."""
    count = 0

    def __init__(self, verbena, address, *sides):
        """sides: the options of verbena run, of the server and of the client."""
        self.verbena = pathlib.Path(verbena).resolve()
        self.address = address
        self.sides = sides

    def words(self, pair, side, world, port, *more):
        program = [str(port.number) if word == PORT else word for word in (pair.server, pair.client)[side]]
        return [self.verbena, "run", "--world", world, *self.sides[side], *pair.options, *more, "--", *program]

    def run(self, pair):
        """Returns what is wrong, or None."""
        for _ in range(RACES_MAX):
            server, client, sent = self.run_once(pair)
            wrong = problem(pair, server, client, sent)
            if not (wrong and pair.race and pair.race in server.output + client.output):
                break
        return wrong

    def run_once(self, pair):
        """Returns how the server and the client ended, and how often the message of the rule was sent."""
        Runner.count += 1
        world = f"connected-{os.getpid()}-{Runner.count}"
        deadline = time.monotonic() + LIMIT_S
        port = Port()
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "server.jsonl"
            trace = pathlib.Path(folder) / "server.pcap"
            rule = ["--fault", pair.rule, "--trace", trace] if pair.rule else []
            server = Process(self.words(pair, 0, world, port, "--log", log, *rule), folder)
            try:
                wait_until(lambda: server.ended() or is_ready(pair, server, port, log), deadline)
                client = Process(self.words(pair, 1, world, port), folder)
                wait_until(client.ended, deadline)
                client = client.end()
                if not pair.forever and not client.status:
                    wait_until(server.ended, deadline)
            finally:
                ended = server.end()
                port.close()
            sent = count_messages(trace, pair.sent[0]) if pair.rule else None
        return ended, client, sent


def runners(verbena, wire, addresses=("127.0.0.1",)):
    """Returns a runner for each link layer and each of the server's addresses; over the wire udp, the runner
    of an IPv4 address of the server's own, which no other test has at the same time."""
    if wire == "udp":
        return [Runner(verbena, f"{NETWORK}.1", ["--wire", f"udp={NETWORK}.1"], ["--wire", f"udp={NETWORK}.2"])]
    return [Runner(verbena, address, *[["--wire", wire, "--link-layer", link_layer]] * 2)
            for link_layer in ("ethernet", "infiniband") for address in addresses]


def run_pairs(cases):
    """Runs (runner, pair). Prints a line for each problem, with both
    outputs, and with -v for each pair. Returns the number of problems."""
    failed = 0
    for runner, pair in cases:
        began = time.monotonic()
        wrong = runner.run(pair)
        failed += wrong is not None
        if wrong or "-v" in sys.argv:
            print(f"{'FAIL' if wrong else 'ok  '} {time.monotonic() - began:5.2f} s "
                  f"{' '.join(map(str, runner.sides[1]))} {pair}{': ' + wrong if wrong else ''}",
                  flush=True)
    print(f"{failed} failed", flush=True)
    return failed
