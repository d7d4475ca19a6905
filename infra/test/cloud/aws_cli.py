"""The AWS CLI without its start, which takes four times as long as a call: it is loaded once, and each call is a fork of it.

It prints its port. A call is the number of arguments, the caller's folder, a folder for the files `out` and `err`, and
the arguments, each with a NUL behind it. The answer is the exit code.
"""

import os
import socket
import sys
import time
import types

from awscli.botocore import waiter
from awscli.clidriver import create_clidriver


def call(driver, connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as sent:
        parts = iter(lambda: b"".join(iter(lambda: sent.read(1), b"\0")).decode(), None)
        count, here, scratch = int(next(parts)), next(parts), next(parts)
        arguments = [next(parts) for _ in range(count)]
        os.chdir(here)
        for name, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"{scratch}/{name}", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        code = 255
        try:
            code = driver.main(arguments)
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            connection.sendall(b"%d\n" % code)


def main(services: list[str]) -> None:
    driver = create_clidriver()
    for service in {*services} & {*driver.session.get_available_services()}:  # their descriptions, read once
        driver.session.create_client(service)
    # `aws … wait` asks an engine, which takes no minutes.
    waiter.time = types.SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, 0.2)))
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    while True:
        connection, _ = listening.accept()
        if child := os.fork():
            connection.close()
            os.waitpid(child, 0)
            continue
        try:
            call(driver, connection)
        finally:
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
