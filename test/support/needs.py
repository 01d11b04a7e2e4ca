#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""usage: needs.py PACKAGE... [-- COMMAND...]

Looks for the Debian packages that a test needs besides those of `scripts/setup build`, and runs COMMAND if all
are there. If one is missing, prints its name and exits with 77, which means skipped; with 99, an error, if the
variable CI is true, because CI has all packages. A script of Python calls needs() or require() of this file.
"""
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
ERROR = 99  # Meson counts it as a failure, even of a test that should fail
SETUP = pathlib.Path(__file__).resolve().parents[2] / "scripts/setup"


def program(name):
    return lambda: bool(shutil.which(name))


def module(name):
    return lambda: bool(importlib.util.find_spec(name))


def file(pattern):
    return lambda: bool(glob.glob(pattern))


def pkg_config(name):
    return lambda: not subprocess.run(["pkg-config", "--exists", name], check=False).returncode


def clang_runtime(name):
    def look():
        if not shutil.which("clang"):
            return False
        folder = subprocess.run(["clang", "-print-runtime-dir"], capture_output=True, text=True, check=False)
        return bool(glob.glob(f"{folder.stdout.strip()}/libclang_rt.{name}*"))
    return look


# How a package shows that it is there; on other distributions its files have other packages.
PROBES = {
    "chromium": file("/usr/bin/chromium"),
    "chromium-driver": program("chromedriver"),
    "clang": program("clang++"),
    "dapl2-utils": program("dtestx"),
    "g++": program("c++"),
    "infiniband-diags": program("ibstat"),
    "ibverbs-utils": program("ibv_rc_pingpong"),
    "iproute2": program("ip"),
    "libclang-rt-dev": clang_runtime("tsan"),
    "libfabric-bin": program("fi_pingpong"),
    "libgloo-dev": file("/usr/include/gloo/transport/ibverbs/device.h"),
    "libgtest-dev": pkg_config("gtest_main"),
    "libopenmpi-dev": program("mpicc"),
    "man-db": program("man"),
    "nodejs": program("node"),
    "openmpi-bin": program("mpirun"),
    "perftest": program("ib_send_bw"),
    "python3-jsonschema": module("jsonschema"),
    "python3-pyverbs": file("/usr/lib/python3/dist-packages/pyverbs"),
    "python3-scapy": module("scapy"),
    "qemu-system-x86": program("qemu-system-x86_64"),
    "qperf": program("qperf"),
    "rdma-core": file("/usr/share/doc/rdma-core/tests/run_tests.py"),
    "rdmacm-utils": program("rping"),
    "tshark": program("tshark"),
    "ucx-utils": program("ucx_perftest"),
    "valgrind": program("valgrind"),
}


def group_of(package):
    """The group of scripts/setup that has the package."""
    for name, words in re.findall(r"^\t\[(\w+)\]='([^']*)'", SETUP.read_text(), re.MULTILINE):
        if package in words.split():
            return name
    raise LookupError(f"no group of {SETUP} has the package {package}")


def lack(packages):
    """Returns None, or a sentence about the first package that is missing."""
    for package in packages:
        group = group_of(package)
        if not PROBES[package]():
            return f"the package {package} is not installed; scripts/setup {group} installs it"
    return None


def in_ci():
    return os.environ.get("CI") == "true"


def needs(*packages, name=pathlib.Path(sys.argv[0]).name):
    """Ends the process if a package is missing."""
    sentence = lack(packages)
    if sentence:
        print(f"{'FAIL' if in_ci() else 'skipped'} {name}: {sentence}", flush=True)
        sys.exit(ERROR if in_ci() else SKIPPED)


def require(test, *packages):
    """Skips a test of unittest if a package is missing, and lets it fail in CI."""
    sentence = lack(packages)
    if sentence and in_ci():
        test.fail(sentence)
    if sentence:
        print(f"skipped {test.id().rpartition('__main__.')[2]}: {sentence}", flush=True)
        test.skipTest(sentence)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    words = sys.argv[1:]
    packages, command = words, None
    if "--" in words:
        at = words.index("--")
        packages, command = words[:at], words[at + 1:]
    needs(*packages, name=" ".join(command or packages))
    if command:
        os.execvp(command[0], command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
