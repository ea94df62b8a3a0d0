"""A daemon on the first processor, for scripts that measure what it takes there; load belongs on another one."""

import collections
import os
import pathlib
import socket
import subprocess
import sys
import time


class PinnedDaemon:
    """`program` with this node.toml in the directory `place`, which answers by now."""

    def __init__(self, program, place, node):
        self.program, self.place = program, place
        (place / "node.toml").write_text(node)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(place / "ready"))
            # So that a daemon that has ended is not waited for.
            ready.settimeout(1)
            self.child = subprocess.Popen(
                [program, "serve", "--config", "node.toml"],
                cwd=place,
                env={**os.environ, "NOTIFY_SOCKET": str(place / "ready")},
                stderr=(place / "log").open("w"),
                stdout=subprocess.DEVNULL,
            )
            os.sched_setaffinity(self.child.pid, {0})
            if not self.is_ready(ready):
                self.stop()
                sys.exit(f"the daemon is not ready; its log says:\n{(place / 'log').read_text()}")

    def is_ready(self, ready):
        """It says so on this socket, within 30 s."""
        ends = time.monotonic() + 30
        while self.child.poll() is None and time.monotonic() < ends:
            try:
                if b"READY=1" in ready.recv(4096):
                    return True
            except TimeoutError:
                pass
        return False

    def run(self, *words, check=True):
        """The command's exit code; ends the script where it is not 0, unless `check` is false."""
        environment = {**os.environ, "CAUSEWAY_API": f"unix:{self.place}/api.sock"}
        done = subprocess.run([self.program, *words], cwd=self.place, env=environment, capture_output=True, text=True)
        if check and done.returncode != 0:
            sys.exit(f"causeway {' '.join(words)}: {done.stderr}")
        return done.returncode

    def apply(self, name, text):
        """Applies objects, which it writes to a file of this name."""
        (self.place / name).write_text(text)
        self.run("apply", "-f", name)

    def processor_times(self):
        """Nanoseconds of its threads, by their names."""
        times = collections.Counter()
        for task in pathlib.Path(f"/proc/{self.child.pid}/task").iterdir():
            times[(task / "comm").read_text().strip()] += int((task / "schedstat").read_text().split()[0])
        return times

    def stop(self):
        """Ends it."""
        self.child.terminate()
        self.child.wait()
