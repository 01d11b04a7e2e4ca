# SPDX-License-Identifier: MIT
"""Test cases that compile programs and run them under `verbena run`."""
import os
import pathlib
import subprocess
import tempfile
import textwrap
import unittest

SECONDS = 60


# The programs of a test script share a world, and no program of another script is in it.
WORLD = f"test-{os.getpid()}"

# A loopback network of this process's own: 127.0.0.0/9 has one for each process number below 32,768. Over the wire
# udp, devices without an address of their own have those of 127.128.0.0/9.
NETWORK = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"


def environment(**more):
    """The environment of a program: without the caller's variables of Verbena."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("VERBENA_")
            and k not in ("LD_LIBRARY_PATH", "LD_BIND_NOW", "NO_COLOR", "COLUMNS")}
    return {**kept, "VERBENA_WORLD": WORLD, **more}


class Programs(unittest.TestCase):
    verbena = "verbena"  # the path of the program verbena
    seconds = SECONDS  # the limit of one command

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def command(self, *words, **more):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              env=environment(**more), cwd=self.path, timeout=self.seconds,
                              errors="replace")

    def check(self, status, *words, **more):
        done = self.command(*words, **more)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return done

    def run_program(self, status, *words, **more):
        return self.check(status, self.verbena, "run", *words, **more)

    def compile(self, name, source, *flags, compiler="cc"):
        """Compiles a file, or a text, in the test's folder. Returns the program's path."""
        if isinstance(source, str):
            path = self.path / f"{name}.{'cc' if compiler.endswith('++') else 'c'}"
            path.write_text(textwrap.dedent(source))
            source = path.name
        program = self.path / name
        # The compiler has the caller's runtime folder: ccache keeps files there.
        done = Programs.command(self, compiler, "-o", program, source, *flags)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return program
