#!/usr/bin/env python3
"""Records commands in a pseudo terminal as an asciinema file, version 2.

cast.py FILE COLUMNS ROWS reads lines `STATUS COMMAND` from standard input. Each command is shown as if it was typed, and is
run by bash; it has to end with STATUS, or one of several with commas between them. Lines that begin with # are shown, and not
run. Pauses are cut to two seconds.
"""
import codecs
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time

LONGEST_PAUSE = 2.0
TYPING = 0.03  # seconds for a letter


class Cast:
    def __init__(self, path, columns, rows):
        self.size = struct.pack("HHHH", rows, columns, 0, 0)
        self.at = 0.0
        self.file = open(path, "w", encoding="utf-8")
        self.line({"version": 2, "width": columns, "height": rows, "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"}})

    def line(self, value):
        self.file.write(json.dumps(value, ensure_ascii=False) + "\n")

    def show(self, text, after):
        self.at += min(after, LONGEST_PAUSE)
        self.line([round(self.at, 3), "o", re.sub(r"token=[0-9a-f]{20,}", "token=(a secret)", text)])

    def type(self, text):
        self.show("\x1b[1m$\x1b[0m ", 1.0)
        for letter in text:
            self.show(letter, TYPING)
        self.show("\r\n", 0.5)

    def run(self, command):
        """Runs a command, and returns its exit status as a shell tells it."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm-256color"
            fcntl.ioctl(0, termios.TIOCSWINSZ, self.size)
            os.execvp("bash", ["bash", "-c", command])
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        last = time.monotonic()
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # how Linux says that nobody has the other end any more
                data = b""
            text = decoder.decode(data, final=not data)
            if text:
                now = time.monotonic()
                self.show(text, now - last)
                last = now
            if not data:
                break
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)  # which would hang up on a program that is just ending
        return status if status >= 0 else 128 - status


def main():
    path, columns, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cast = Cast(path + ".new", columns, rows)
    for line in sys.stdin:
        wanted, _, command = line.strip().partition(" ")
        if not command:
            continue
        if wanted == "#":
            cast.show("\x1b[2m# " + command + "\x1b[0m\r\n", 1.0)
            continue
        cast.type(command)
        status = cast.run(command)
        if str(status) not in wanted.split(","):
            sys.exit(f"cast.py: {command}: exit status {status}, not {wanted}: {path}.new has what it said")
    cast.show("", LONGEST_PAUSE)
    cast.file.close()
    os.replace(path + ".new", path)


main()
